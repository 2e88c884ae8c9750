// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two connected queue pairs, each in a process of its own.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/pair.hpp"

namespace dapple::tests {

// In memory that the two processes share.
struct Meeting {
  std::atomic<uint32_t> qpn[2];
  std::atomic<int> ready{0};  // ends
};

// Opens the device, makes an end with one completion queue, and connects it to the other process' end. `number`: 0 or
// 1. Requests have one segment.
inline bool open_end(End& end, Meeting& meeting, int number, uint8_t timeout, uint32_t max_inline = 0) {
  ibv_context* context = open_loopback();
  ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  if (pd == nullptr) return false;
  end.cq = ibv_create_cq(context, 2 * kDepth, nullptr, nullptr, 0);
  end.mr = ibv_reg_mr(pd, end.buffer, sizeof end.buffer, int{IBV_ACCESS_LOCAL_WRITE});
  if (end.cq == nullptr || end.mr == nullptr) return false;
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = end.cq;
  attr.cap = {kDepth, kDepth, 1, 1, max_inline};
  attr.qp_type = IBV_QPT_RC;
  end.qp = ibv_create_qp(pd, &attr);
  if (end.qp == nullptr) return false;
  meeting.qpn[number] = end.qp->qp_num;
  const std::atomic<uint32_t>& peer = meeting.qpn[1 - number];
  return await(kPatience, [&] { return peer != 0; }) && connect(end.qp, peer, timeout);
}

// This end has posted its first receives. Waits for the other one.
inline bool meet(Meeting& meeting) {
  meeting.ready++;
  return await(kPatience, [&] { return meeting.ready == 2; });
}

// Runs the two ends, each in a process of its own. Returns the test's exit code.
template <class Receive, class Send>
int run_ends(Receive receive, Send send) {
  const pid_t receiver = start_process(receive);
  if (!ends_with(start_process(send), 0)) failed("the sender");
  if (!ends_with(receiver, 0)) failed("the receiver");
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}

}  // namespace dapple::tests
