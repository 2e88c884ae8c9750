// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An observer learns of each request that ends, whether it has a completion or not.
#include <string>

#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

struct Observer final : RequestObserver {
  void sent(SendOpcode opcode, uint64_t bytes, CompletionStatus status) override {
    note("sent", static_cast<int>(opcode), bytes, static_cast<int>(status));
  }
  void received(uint64_t bytes, CompletionStatus status) override {
    note("received", 0, bytes, static_cast<int>(status));
  }
  void executed(bool is_read, uint64_t bytes, bool is_refused) override {
    note("executed", is_read ? 1 : 0, bytes, is_refused ? 1 : 0);
  }
  void note(const char* what, int kind, uint64_t bytes, int status) {
    lines += std::string(what) + " " + std::to_string(kind) + " " + std::to_string(bytes) + " " +
             std::to_string(status) + "\n";
  }
  std::string lines;
};

struct Observed : Pair {
  explicit Observed(QpType type = QpType::kRc, bool may_lose_packets = true) : Pair(type, may_lose_packets) {
    a.qp->observed_by(of_a);
    b.qp->observed_by(of_b);
  }
  void send(SendOpcode opcode, uint32_t length, uint8_t flags = 0, uint32_t rkey = kKey) {
    SendRequest request = a.request(opcode, length);
    request.flags = flags;
    request.rkey = rkey;
    assert_int_equal(a.qp->post_send(request), PostError::kNone);
    run();
  }

  Observer of_a, of_b;
};

void requests__without_completions__are_seen(void**) {
  Observed pair;
  pair.b.post_receive(1000);
  pair.send(SendOpcode::kSend, 700);
  pair.send(SendOpcode::kWrite, 600);
  pair.send(SendOpcode::kRead, 500);
  pair.b.post_receive(0);
  pair.send(SendOpcode::kWriteImmediate, 8, kSignaled);
  assert_int_equal(pair.a.sent.size(), 1);
  assert_string_equal(pair.of_a.lines.c_str(), "sent 2 700 0\nsent 0 600 0\nsent 4 500 0\nsent 1 8 0\n");
  assert_string_equal(pair.of_b.lines.c_str(),
                      "received 0 700 0\nexecuted 0 600 0\nexecuted 1 500 0\nexecuted 0 8 0\nreceived 0 8 0\n");
}

// A Send that goes out at its post has no completion either.
void send__at_once_and_not_signalled__is_seen(void**) {
  Observed pair(QpType::kRc, false);
  pair.b.post_receive(8);
  const SendRequest request = pair.a.request(SendOpcode::kSend, 8);
  assert_true(pair.a.send_at_once(pair.now, {.id = 7, .flags = 0, .segments = request.segments}));
  pair.run();
  assert_int_equal(pair.a.sent.size(), 0);
  assert_string_equal(pair.of_a.lines.c_str(), "sent 2 8 0\n");
  assert_string_equal(pair.of_b.lines.c_str(), "received 0 8 0\n");
}

void duplicate__is_seen_once(void**) {
  Observed pair;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kWrite, 8)), PostError::kNone);
  pair.a.qp->transmit(pair.now, pair.a);
  pair.a.link.push_back(pair.a.link.front());
  pair.run();
  assert_string_equal(pair.of_b.lines.c_str(), "executed 0 8 0\n");
  assert_string_equal(pair.of_a.lines.c_str(), "sent 0 8 0\n");
}

// One of several requests on the wire is one Read, which ends when all of its bytes have left.
void long_read__is_seen_once__at_its_end(void**) {
  constexpr uint32_t kLength = 100'000;
  Observed pair;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kRead, kLength)), PostError::kNone);
  pair.a.qp->transmit(pair.now, pair.a);
  while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
  assert_string_equal(pair.of_b.lines.c_str(), "");
  pair.run();
  assert_string_equal(pair.of_b.lines.c_str(), "executed 1 100000 0\n");
  assert_string_equal(pair.of_a.lines.c_str(), "sent 4 100000 0\n");
}

void read__repeated__is_seen_once(void**) {
  Observed pair;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kRead, 1000)), PostError::kNone);
  pair.a.qp->transmit(pair.now, pair.a);
  pair.a.link.push_back(pair.a.link.front());
  pair.run();
  assert_string_equal(pair.of_b.lines.c_str(), "executed 1 1000 0\n");
}

void read__memory_goes_before_the_answer__is_an_error(void**) {
  Observed pair;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kRead, 1000)), PostError::kNone);
  pair.a.qp->transmit(pair.now, pair.a);
  while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
  pair.b.revoked = true;
  pair.run();
  assert_string_equal(pair.of_b.lines.c_str(), "executed 1 0 1\n");
}

void refused_write__is_an_error_at_both_ends(void**) {
  Observed pair;
  pair.send(SendOpcode::kWrite, 8, 0, kBadKey);
  assert_string_equal(pair.of_b.lines.c_str(), "executed 0 0 1\n");
  assert_string_equal(pair.of_a.lines.c_str(), "sent 0 8 10\n");
}

void error__flushes__are_seen(void**) {
  Observed pair;
  pair.b.post_receive(8);
  pair.b.post_receive(8);
  QpAttributes attributes;
  attributes.state = QpState::kError;
  assert_true(pair.b.qp->modify(attributes, kState));
  assert_string_equal(pair.of_b.lines.c_str(), "received 0 0 5\nreceived 0 0 5\n");
}

void unreliable__messages__are_seen(void**) {
  Observed pair(QpType::kUc);
  pair.send(SendOpcode::kWrite, 300);
  pair.b.post_receive(8);
  pair.send(SendOpcode::kSend, 8);
  assert_string_equal(pair.of_a.lines.c_str(), "sent 0 300 0\nsent 2 8 0\n");
  assert_string_equal(pair.of_b.lines.c_str(), "executed 0 300 0\nreceived 0 8 0\n");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(requests__without_completions__are_seen),
      cmocka_unit_test(send__at_once_and_not_signalled__is_seen),
      cmocka_unit_test(duplicate__is_seen_once),
      cmocka_unit_test(long_read__is_seen_once__at_its_end),
      cmocka_unit_test(read__repeated__is_seen_once),
      cmocka_unit_test(read__memory_goes_before_the_answer__is_an_error),
      cmocka_unit_test(refused_write__is_an_error_at_both_ends),
      cmocka_unit_test(error__flushes__are_seen),
      cmocka_unit_test(unreliable__messages__are_seen),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
