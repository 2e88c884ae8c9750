// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/dappledv.h>
#include <librpma.h>

#include "ibverbs-glue/verbs.hpp"
#include "rpma/memory/device.hpp"

// Threads: immutable.
struct rpma_peer {
  dapple::rpma::Device device;
  dapple::verbs::Pd pd;  // destroyed before its device is released
  bool iwarp = false;
  bool on_demand_paging = false;  // for Reads and Writes on connections
  uint8_t native = 0;             // dapple::rpma::native::k* of the device; 0 if they are forbidden
  bool native_forbidden = false;

  // The attributes for the cache maintenance of buffers; null if the device is coherent.
  const dappledv_region_attr* maintenance() const {
    return device.memory().coherence == DAPPLEDV_COHERENCE_COHERENT ? nullptr : &device.memory();
  }
};

namespace dapple::rpma {

// True if the device can do Reads and Writes on connections without pinned memory.
bool is_odp_capable(uint64_t general_caps, uint32_t rc_caps) noexcept;

// The access that a usage (RPMA_MR_USAGE_*) needs on every device. Flushes of any kind need read access as well,
// because a peer may flush by a Read.
unsigned access_of(int usage, bool iwarp) noexcept;

// Registers with the best access that the device supports. usage: checked by the caller. Null with errno set on
// failure, which was logged. native: the native::k* that the region supports.
verbs::Mr register_memory(const rpma_peer& peer, void* address, size_t size, int usage, uint8_t& native) noexcept;

}  // namespace dapple::rpma
