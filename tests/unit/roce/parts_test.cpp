// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Long messages go out in parts of the window.
#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

// With an MTU of 256 bytes: the first window, and the largest.
constexpr uint32_t kFirstWindow = 128;
constexpr uint32_t kLargestWindow = 180;

void post_write(Endpoint& endpoint, uint32_t packets) {
  const SendRequest request = endpoint.request(SendOpcode::kWrite, packets * kMtu);
  assert_int_equal(endpoint.qp->post_send(request), PostError::kNone);
}

// Delivers packets of `a`, and the acknowledgement of `b` behind them.
void deliver_acknowledged(Pair& pair, uint32_t packets) {
  for (uint32_t i = 0; i < packets; i++) pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.link.size(), 1);
  pair.deliver(pair.b, pair.a);
}

uint32_t transmitted(Pair& pair) {
  const size_t before = pair.a.link.size();
  pair.a.qp->transmit(pair.now, pair.a);
  return static_cast<uint32_t>(pair.a.link.size() - before);
}

void parts__each_asks_for_an_acknowledgement(void**) {
  Pair pair;
  post_write(pair.a, 400);
  assert_int_equal(transmitted(pair), kFirstWindow);
  for (uint32_t i = 0; i < kFirstWindow; i++) {
    const bool ends = (i + 1) % (kFirstWindow / 3) == 0 || i + 1 == kFirstWindow;
    assert_int_equal(Pair::parsed(pair.a.link[i]).headers.ack_request, ends);
  }
}

void parts__a_long_message_waits_for_room_for_one(void**) {
  Pair pair;
  post_write(pair.a, 400);
  assert_int_equal(transmitted(pair), kFirstWindow);
  deliver_acknowledged(pair, 42);
  assert_int_equal(transmitted(pair), 2 * 42);  // the window grows, too
  deliver_acknowledged(pair, 42);
  assert_int_equal(transmitted(pair), 0);
  deliver_acknowledged(pair, 42);
  assert_int_equal(transmitted(pair), kLargestWindow - 2 * 42 - (kFirstWindow - 3 * 42));
}

// The acknowledgement of a message may be the last one: if all behind it is lost, more packets provoke a NAK.
void parts__the_room_of_a_message_that_ended_is_used_at_once(void**) {
  Pair pair;
  post_write(pair.a, 10);
  post_write(pair.a, 390);
  assert_int_equal(transmitted(pair), kFirstWindow);
  deliver_acknowledged(pair, 10);
  assert_int_equal(transmitted(pair), 2 * 10);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts__each_asks_for_an_acknowledgement),
      cmocka_unit_test(parts__a_long_message_waits_for_room_for_one),
      cmocka_unit_test(parts__the_room_of_a_message_that_ended_is_used_at_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
