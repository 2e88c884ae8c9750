// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two Sends wait for receives. The program moves their queue pair to RTS once more, which keeps them, and then changes
// the second one's buffer, which has not been transmitted. dapple-run --check must find this in one of several tries:
// a machine may be so busy that a wait ends before the change.
#include <stdio.h>

#include <memory>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple::tests;

namespace {

constexpr uint8_t kTimer82Milliseconds = 26;  // as in ibv_qp_attr
constexpr uint32_t kLength = 64;

bool to_rts_again(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.min_rnr_timer = kTimer82Milliseconds;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) == 0;
}

// The first Send gets the answer that there is no receive. The second one waits behind it, and only it is changed.
bool change_what_waits(Pair& pair, char value) {
  ibv_wc completion;
  if (post_send(pair.a, 1, IBV_WR_SEND, 0, kLength) != 0) return false;
  for (int i = 0; i < 1000; i++) {
    if (ibv_poll_cq(pair.b.cq, 1, &completion) != 0 || ibv_poll_cq(pair.a.cq, 1, &completion) != 0) return false;
  }
  if (post_send(pair.a, 2, IBV_WR_SEND, kLength, kLength) != 0 || !to_rts_again(pair.a.qp)) return false;
  pair.a.buffer[kLength] = value;
  for (size_t i = 0; i < 2; i++) {
    if (post_receive(pair.b, 3, i * kLength, kLength) != 0) return false;
  }
  for (int i = 0; i < 2; i++) {
    if (!wait_for(pair.a.cq, completion) || completion.status != IBV_WC_SUCCESS) return false;
    if (!wait_for(pair.b.cq, completion) || completion.status != IBV_WC_SUCCESS) return false;
  }
  return true;
}

}  // namespace

int main() {
  need_new_namespace();
  const std::unique_ptr<Pair> pair(make_pair({}));
  if (pair == nullptr || !to_rts_again(pair->b.qp)) {
    puts("SKIP: no pair of queue pairs");
    return 77;
  }
  for (char value = 1; value <= 5; value++) {
    if (!change_what_waits(*pair, value)) return 1;
  }
  puts("all went as planned");
  return 0;
}
