// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ports of rdma_cm's port spaces and the ids that are bound to them.
#pragma once

#include <cstdint>

#include "provider/dappled/rdma_cm/ids/id.hpp"

namespace dapple::dappled::rdma_cm {

class PortTable {
 public:
  // The ephemeral ports, both included.
  PortTable(uint16_t first, uint16_t last) : first_(first), last_(last) {}

  // Binds the id to the port of its source address. For port 0, a search from a random port finds a free one. 0 or an
  // errno.
  int bind(CmId& id, uint64_t random);
  void release(CmId& id);
  // May the id listen at its port? An id that listens shares it with nobody. 0 or an errno.
  int may_listen(const CmId& id) const { return check(id, false); }

 private:
  static constexpr uint32_t kBuckets = 4096;

  CmId*& bucket(uint16_t port_space, uint16_t port) { return buckets_[(port_space * 31U + port) % kBuckets]; }
  CmId* first_of(uint16_t port_space, uint16_t port) const;
  static CmId* next_of(const CmId& id);
  int check(const CmId& id, bool reuse_address) const;

  uint16_t first_;
  uint16_t last_;
  CmId* buckets_[kBuckets] = {};
};

}  // namespace dapple::dappled::rdma_cm
