// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Objects of librpma on the fake device.
#pragma once

#include <librpma.h>

#include "tests/unit/rpma/fake_verbs.hpp"

struct Objects {
  alignas(8) unsigned char memory[256] = {};
  rpma_peer* peer = nullptr;
  rpma_mr_local* mr = nullptr;  // of memory, for everything
  rpma_mr_remote* remote = nullptr;
  rpma_conn_cfg* cfg = nullptr;
  rpma_srq_cfg* srq_cfg = nullptr;
  rpma_peer_cfg* peer_cfg = nullptr;
  rpma_srq* srq = nullptr;
  rpma_ep* ep = nullptr;
  rpma_conn_req* req = nullptr;
  rpma_conn* conn = nullptr;
  rpma_cq* cq = nullptr;

  // All objects except a request and a connection.
  void make();
  // An established connection to a peer that gave this descriptor, by default that of mr.
  void connect(const rpma_conn_cfg* with = nullptr);
  void take_remote(const void* descriptor, size_t size);
  // Frees all objects.
  void free();
};

// The only request that was posted since the last call.
inline fake::Posted only_posted() {
  assert_int_equal(fake::state.posted.size(), 1);
  const fake::Posted posted = fake::state.posted[0];
  fake::state.posted.clear();
  return posted;
}
