// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/late_queue_pair.hpp"

#include "tests/unit/provider/cmocka.hpp"

using dapple::roce::kNever;
using dapple::roce::PostError;
using dapple::roce::QpState;
using dapple::roce::Time;
using dapple::soft::check::LateQueuePair;

namespace {

class Engine final : public dapple::roce::QueuePair {
 public:
  bool modify(const dapple::roce::QpAttributes& attributes, uint32_t) override {
    state_ = attributes.state;
    return true;
  }
  dapple::roce::QpAttributes attributes() const override { return {.timeout = timeout}; }
  PostError post_send(const dapple::roce::SendRequest& request) override {
    return request.id == kRefused ? PostError::kFull : PostError::kNone;
  }
  PostError check_send(const dapple::roce::SendRequest&, uint32_t) const override { return PostError::kNone; }
  void receives_posted() override {}
  void receive(dapple::roce::Now, const dapple::roce::Packet&) override {}
  bool transmit(dapple::roce::Now, dapple::roce::PacketSink&) override {
    transmits++;
    return true;
  }
  Time deadline() const override { return due; }
  void expire(dapple::roce::Now) override {
    expired++;
    state_ = QpState::kError;
  }
  dapple::roce::Owes owes() const override { return dapple::roce::Owes::kMore; }
  void observed_by(dapple::roce::RequestObserver&) override {}
  const dapple::roce::QpCounters& counters() const override { return counted; }
  uint64_t outstanding_sends() const override { return 0; }

  static constexpr uint64_t kRefused = 1;
  dapple::roce::QpCounters counted;
  Time due = kNever;
  uint8_t timeout = 14;
  int transmits = 0, expired = 0;
};

class Sink final : public dapple::roce::PacketSink {
 public:
  std::byte* reserve(size_t) override { return nullptr; }
  void commit(const dapple::roce::AddressVector*) override {}
};

struct Stand {
  explicit Stand(uint64_t seed = 1) : late(std::unique_ptr<Engine>(engine), seed) {}

  // Posts until a request is late, at this time.
  void be_late(Time now) {
    for (int i = 0; i < 1000; i++) {
      assert_int_equal(late.post_send({}), PostError::kNone);
      if (!late.transmit(now, sink)) return;
    }
    fail_msg("no request of 1000 is late");
  }

  Engine* engine = new Engine;
  LateQueuePair late;
  Sink sink;
};

// Late ones among `count` requests.
int late_of(Stand& stand, Time& now, int count) {
  int late = 0;
  for (int i = 0; i < count; i++) {
    assert_int_equal(stand.late.post_send({}), PostError::kNone);
    if (stand.late.transmit(now, stand.sink)) continue;
    late++;
    now = stand.late.deadline();
    assert_true(stand.late.transmit(now, stand.sink));
  }
  return late;
}

void post_send__many_requests__are_late_more_rarely(void**) {
  Stand stand;
  Time now = 5'000'000;
  assert_in_range(late_of(stand, now, 256), 32, 128);
  assert_in_range(late_of(stand, now, 12'800), 50, 200);
}

void transmit__a_late_request__waits_and_then_goes_on(void**) {
  Stand stand;
  constexpr Time kStart = 5'000'000;
  stand.be_late(kStart);
  const int transmits = stand.engine->transmits;
  const Time until = stand.late.deadline();
  assert_in_range(until, kStart + 50'000, kStart + 1'000'000);
  assert_false(stand.late.transmit(until - 1, stand.sink));
  // Further requests wait with it, and do not prolong it.
  assert_int_equal(stand.late.post_send({}), PostError::kNone);
  assert_false(stand.late.transmit(until - 1, stand.sink));
  assert_int_equal(stand.late.deadline(), until);
  assert_int_equal(stand.engine->transmits, transmits);
  stand.late.expire(until);
  assert_int_equal(stand.engine->expired, 0);
  assert_true(stand.late.transmit(until, stand.sink));
  assert_int_equal(stand.late.deadline(), kNever);
}

void transmit__a_refused_request__is_never_late(void**) {
  Stand stand;
  dapple::roce::SendRequest refused;
  refused.id = Engine::kRefused;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(stand.late.post_send(refused), PostError::kFull);
    assert_true(stand.late.transmit(1, stand.sink));
  }
}

void transmit__the_peer_would_give_up_soon__a_short_wait_or_none(void**) {
  Stand stand;
  constexpr Time kStart = 5'000'000;
  // 4.096 us * 2^8.
  stand.engine->timeout = 8;
  stand.be_late(kStart);
  assert_in_range(stand.late.deadline(), kStart + 50'000, kStart + 132'000);
  assert_true(stand.late.transmit(stand.late.deadline(), stand.sink));
  stand.engine->timeout = 6;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(stand.late.post_send({}), PostError::kNone);
    assert_true(stand.late.transmit(kStart, stand.sink));
  }
}

void expire__the_engines_deadline__is_kept_while_a_request_waits(void**) {
  Stand stand;
  stand.be_late(5'000'000);
  stand.engine->due = 5'000'100;
  assert_int_equal(stand.late.deadline(), 5'000'100);
  stand.late.expire(5'000'100);
  assert_int_equal(stand.engine->expired, 1);
  assert_int_equal(stand.late.state(), QpState::kError);
}

void post_send__the_same_seed__the_same_requests_are_late(void**) {
  const auto late_ones = [](uint64_t seed) {
    Stand stand(seed);
    uint64_t bits = 0;
    for (Time now = 0; now < 64 * 10'000'000; now += 10'000'000) {
      stand.late.post_send({});
      bits = bits << 1 | uint64_t{!stand.late.transmit(now, stand.sink)};
      stand.late.transmit(now + 5'000'000, stand.sink);
    }
    return bits;
  };
  assert_int_equal(late_ones(1), late_ones(1));
  assert_int_not_equal(late_ones(1), late_ones(2));
  assert_in_range(__builtin_popcountll(late_ones(1)), 4, 32);
}

void modify__another_state__is_the_queue_pairs_state(void**) {
  Stand stand;
  stand.late.modify({.state = QpState::kRts}, dapple::roce::kState);
  assert_int_equal(stand.late.state(), QpState::kRts);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(post_send__many_requests__are_late_more_rarely),
      cmocka_unit_test(transmit__a_late_request__waits_and_then_goes_on),
      cmocka_unit_test(transmit__a_refused_request__is_never_late),
      cmocka_unit_test(transmit__the_peer_would_give_up_soon__a_short_wait_or_none),
      cmocka_unit_test(expire__the_engines_deadline__is_kept_while_a_request_waits),
      cmocka_unit_test(post_send__the_same_seed__the_same_requests_are_late),
      cmocka_unit_test(modify__another_state__is_the_queue_pairs_state),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
