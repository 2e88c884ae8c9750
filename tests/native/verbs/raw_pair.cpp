// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/raw_pair.hpp"

#include <string.h>

#include <initializer_list>

#include "tests/native/verbs/rig.hpp"

namespace dapple::tests {

RawEnd* a = nullptr;
RawEnd* b = nullptr;
ibv_qp* sender = nullptr;
ibv_qp* receivers[2] = {};

bool begin_raw() {
  a = new RawEnd;
  b = new RawEnd;
  if (!open_end(*a, "va") || !open_end(*b, "vb")) return false;
  sender = make_raw_qp(*a);
  for (ibv_qp*& qp : receivers) qp = make_raw_qp(*b);
  return sender != nullptr && receivers[0] != nullptr && receivers[1] != nullptr && raw_qp_to_rts(sender) &&
         raw_qp_to_rts(receivers[0]) && raw_qp_to_rts(receivers[1]);
}

int end_raw(void**) {
  for (ibv_qp* qp : {sender, receivers[0], receivers[1]}) {
    if (qp != nullptr) ibv_destroy_qp(qp);
  }
  for (RawEnd* end : {a, b}) {
    if (end != nullptr) close_end(*end);
    delete end;
  }
  a = b = nullptr;
  sender = receivers[0] = receivers[1] = nullptr;
  return 0;
}

void send_udp(uint16_t port, size_t payload, char mark) {
  const size_t size = write_udp(a->slot(0), 5000, port, payload, mark);
  assert_int_equal(post_frame(*a, sender, 1, 0, size), 0);
  expect(a->cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
}

void expect_udp(uint64_t id, const ibv_qp* qp, size_t payload, char mark) {
  ibv_wc completion;
  assert_true(wait_for(b->cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_int_equal(completion.opcode, IBV_WC_RECV);
  assert_int_equal(completion.wr_id, id);
  assert_int_equal(completion.qp_num, qp->qp_num);
  const size_t size = kUdpHeaders + payload;
  assert_int_equal(completion.byte_len, size < kShortFrame ? kShortFrame : size);
  assert_int_equal(completion.wc_flags, IBV_WC_IP_CSUM_OK);
  unsigned char expected[kRawSlotSize];
  write_udp(expected, 5000, 0, payload, mark);
  assert_memory_equal(b->slot(static_cast<uint32_t>(id)) + kUdpHeaders, expected + kUdpHeaders, payload);
}

}  // namespace dapple::tests
