// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The native RDMA operations Atomic Write and Flush. The headers of older releases of rdma-core lack them, so this file
// has the numbers of libibverbs' ABI, and every decision is made at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ibverbs-glue/verbs.hpp"

namespace dapple::rpma::native {

// The native operations of a device or a peer. These values travel in descriptors of regions and never change.
inline constexpr uint8_t kAtomicWrite = 1 << 0;
inline constexpr uint8_t kFlushVisibility = 1 << 1;
inline constexpr uint8_t kFlushPersistent = 1 << 2;
inline constexpr uint8_t kFlushAny = kFlushVisibility | kFlushPersistent;

// Values of enum ibv_access_flags.
inline constexpr unsigned kAccessFlushGlobal = 1 << 8;
inline constexpr unsigned kAccessFlushPersistent = 1 << 9;
// Values of enum ibv_odp_transport_cap_bits.
inline constexpr uint32_t kOdpFlush = 1 << 6;
inline constexpr uint32_t kOdpAtomicWrite = 1 << 7;
// Values of enum ibv_qp_create_send_ops_flags.
inline constexpr uint64_t kQpWithFlush = 1 << 11;
inline constexpr uint64_t kQpWithAtomicWrite = 1 << 12;
// Values of enum ibv_placement_type, and the one of enum ibv_selectivity_level for a range.
inline constexpr uint8_t kPlacementGlobal = 1 << 0;
inline constexpr uint8_t kPlacementPersistent = 1 << 1;
inline constexpr uint8_t kRange = 0;

using AtomicWrite = void (*)(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address, const void* bytes);
using Flush = void (*)(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address, size_t length, uint8_t placement,
                       uint8_t selectivity);

// The operations of a queue pair; null if the queue pair was made without them.
struct Operations {
  ibv_qp_ex* qp = nullptr;
  AtomicWrite atomic_write = nullptr;
  Flush flush = nullptr;
};

// The field of struct ibv_qp_ex that is this many fields after wr_abort, the last field in all releases.
template <class Function>
inline Function operation_after_abort(const ibv_qp_ex* qp, size_t distance) noexcept {
  Function function = nullptr;
  const char* fields = reinterpret_cast<const char*>(qp) + offsetof(ibv_qp_ex, wr_abort);
  std::memcpy(&function, fields + distance * sizeof function, sizeof function);
  return function;
}

// made_with: the kQpWith* flags with which the queue pair was created. A libibverbs that accepts such a flag has the
// field for it.
inline Operations operations_of(ibv_qp* qp, uint64_t made_with) noexcept {
  Operations found;
  if (made_with == 0) return found;
  found.qp = ibv_qp_to_qp_ex(qp);
  if (!found.qp) return found;
  if (made_with & kQpWithAtomicWrite) found.atomic_write = operation_after_abort<AtomicWrite>(found.qp, 1);
  if (made_with & kQpWithFlush) found.flush = operation_after_abort<Flush>(found.qp, 2);
  return found;
}

}  // namespace dapple::rpma::native
