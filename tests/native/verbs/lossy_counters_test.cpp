// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The counters of a device whose network loses packets agree with what the program has sent. Runs under dapple-run with
// UDP and with the loss that the environment has (CMakeLists.txt).
#include <stdio.h>

#include <initializer_list>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint64_t kMessages = 200;
constexpr uint32_t kSize = 3000;
constexpr uint64_t kPackets = 3;  // of a message; the path MTU is 1,024

Watcher watcher;
soft::StatusReply status;

uint64_t of(const char* key) {
  return counter(status, key);
}

// The last packets may still be on their way. A packet that was sent is received, or counted as lost.
bool all_have_arrived() {
  return watcher.status(status) && of("sent_packets") == of("received_packets") + of("fault_drops");
}

void counters__of_a_device_that_loses_packets__agree(void**) {
  assert_true(begin({}));
  for (uint64_t id = 0; id < kMessages; ++id) {
    assert_int_equal(post_receive(pair->b, id, 0, kSize), 0);
    assert_int_equal(post_send(pair->a, id, IBV_WR_SEND, 0, kSize), 0);
    expect(pair->a.cq, id, IBV_WC_SUCCESS, IBV_WC_SEND);
    expect(pair->b.cq, id, IBV_WC_SUCCESS, IBV_WC_RECV);
  }
  assert_true(await(kPatience, all_have_arrived));
  assert_int_not_equal(of("fault_drops"), 0);
  // Each lost request is sent again, and so may be a request whose acknowledgement was lost.
  assert_int_not_equal(of("retransmitted_packets"), 0);
  // Each packet of a message once without its repetitions, and at least one acknowledgement for each message, because
  // the program waits for it.
  const uint64_t first_ones = of("sent_packets") - of("retransmitted_packets");
  assert_true(first_ones >= kMessages * (kPackets + 1));
  // Answers are to requests that have come: at most one to each.
  const uint64_t answers = first_ones - kMessages * kPackets;
  assert_true(answers <= of("received_packets"));
  // A loss is seen by a gap, a duplicate or a timeout.
  assert_true(of("sequence_naks_sent") + of("duplicates") + of("timeouts") > 0);
  assert_true(of("sent_bytes") > of("received_bytes") && of("received_bytes") >= kMessages * kSize);
  for (const char* key : {"rnr_naks_sent", "dropped_packets", "bad_icrc", "no_queue_pair", "same_host_sent_packets"})
    assert_int_equal(of(key), 0);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(counters__of_a_device_that_loses_packets__agree, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
