// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/weak_queue_pair.hpp"

#include <string.h>

#include <initializer_list>

#include "provider/soft/memory/memory_table.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::roce;

namespace {

constexpr Accessor kOwner = {7, 0x10011};
constexpr size_t kBytes = 256;
constexpr Time kStart = 5'000'000;
constexpr Time kShortest = 20'000, kLongest = 200'000;

// Writes kBytes of `value` when a packet of a Write comes, and has any number of packets to send.
class Engine final : public QueuePair {
 public:
  Engine(Memory& memory, const RemoteRange& range) : memory_(memory), range_(range) {}
  bool modify(const QpAttributes& attributes, uint32_t) override {
    state_ = attributes.state;
    return true;
  }
  QpAttributes attributes() const override { return {.timeout = timeout}; }
  PostError post_send(const SendRequest&) override { return PostError::kNone; }
  PostError check_send(const SendRequest&, uint32_t) const override { return PostError::kNone; }
  void receives_posted() override {}
  void receive(Now, const Packet& packet) override {
    if (!packet.info->has(kIsWrite)) return;
    std::byte bytes[kBytes];
    memset(bytes, value, sizeof bytes);
    memory_.write(kOwner, range_, bytes);
  }
  bool transmit(Now, PacketSink& sink) override {
    for (; packets > 0; packets--) {
      if (sink.reserve(100) == nullptr) return true;
      sink.commit(nullptr);
    }
    return false;
  }
  Time deadline() const override { return kNever; }
  void expire(Now) override {}
  Owes owes() const override { return Owes::kMore; }
  void observed_by(RequestObserver&) override {}
  const QpCounters& counters() const override { return counted_; }
  uint64_t outstanding_sends() const override { return 0; }

  uint8_t timeout = 14;
  int value = 0;
  int packets = 0;

 private:
  Memory& memory_;
  const RemoteRange range_;
  QpCounters counted_;
};

class Sink final : public PacketSink {
 public:
  std::byte* reserve(size_t) override { return room; }
  void commit(const AddressVector*) override { sent++; }
  std::byte room[128];
  int sent = 0;
};

struct Stand {
  explicit Stand(uint64_t seed = 1) {
    uint32_t key = 0;
    table.add_region({kOwner.domain, memory, sizeof memory, 0, kLocalWrite | kRemoteWrite}, key);
    std::unique_ptr<WeakMemory> view = WeakMemory::create(table, seed);
    engine = new Engine(*view, {key, 0, kBytes});
    weak = std::make_unique<WeakQueuePair>(std::unique_ptr<QueuePair>(engine), std::move(view), seed);
  }

  void receive(Operation operation, Time now = kStart) const {
    Packet packet;
    packet.info = &opcode_info(opcode_of(Transport::kRc, operation));
    weak->receive(now, packet);
  }
  bool is_whole() const {
    for (const std::byte byte : memory) {
      if (byte != std::byte(engine->value)) return false;
    }
    return true;
  }
  // Brings other bytes until some of them are kept.
  void be_incomplete(Time now = kStart) {
    for (int i = 0; i < 100; i++) {
      engine->value = (engine->value + 1) % 100;
      receive(Operation::kWriteOnly, now);
      if (!is_whole()) return;
    }
    fail_msg("the bytes of 100 Writes come at once");
  }
  // Packets that leave until the queue pair waits.
  int transmit(Time now) {
    const int before = sink.sent;
    weak->transmit(now, sink);
    return sink.sent - before;
  }

  alignas(64) std::byte memory[kBytes] = {};
  MemoryTable table{1};
  Engine* engine = nullptr;
  std::unique_ptr<WeakQueuePair> weak;
  Sink sink;
};

void receive__bytes_of_a_write__are_whole_at_the_deadline(void**) {
  Stand stand;
  stand.be_incomplete();
  const Time due = stand.weak->deadline();
  assert_in_range(due, kStart + kShortest, kStart + kLongest);
  stand.weak->expire(due - 1);
  assert_false(stand.is_whole());
  stand.weak->expire(due);
  assert_true(stand.is_whole());
  assert_int_equal(stand.weak->deadline(), kNever);
}

void receive__anything_behind_a_write__finds_its_bytes(void**) {
  for (const Operation next : {Operation::kSendOnly, Operation::kReadRequest, Operation::kFetchAdd, Operation::kFlush,
                               Operation::kAtomicWrite}) {
    Stand stand;
    stand.be_incomplete();
    stand.receive(next);
    assert_true(stand.is_whole());
  }
}

void receive__a_write_with_immediate_data__is_whole_at_once(void**) {
  Stand stand;
  for (int i = 1; i < 100; i++) {
    stand.be_incomplete();
    stand.engine->value = 100;
    stand.receive(Operation::kWriteLastImmediate);
    assert_true(stand.is_whole());
  }
}

void receive__answers_and_the_rest_of_the_write__leave_bytes_out(void**) {
  Stand stand;
  stand.be_incomplete();
  stand.receive(Operation::kAcknowledge);
  assert_false(stand.is_whole());
}

void modify__to_the_error_state__is_preceded_by_the_bytes(void**) {
  Stand stand;
  stand.be_incomplete();
  stand.weak->modify({.state = QpState::kError}, kState);
  assert_int_equal(stand.weak->state(), QpState::kError);
  assert_true(stand.is_whole());
}

void transmit__many_packets__pauses_and_goes_on(void**) {
  Stand stand;
  stand.engine->packets = 1000;
  int turns = 0;
  for (Time now = kStart; stand.engine->packets > 0; turns++) {
    stand.transmit(now);
    const Time until = stand.weak->deadline();
    if (until == kNever) continue;
    assert_in_range(until, now + kShortest, now + kLongest);
    assert_int_equal(stand.transmit(until - 1), 0);
    now = until;
  }
  assert_int_equal(stand.sink.sent, 1000);
  assert_in_range(turns, 60, 250);
}

void transmit__after_a_read_request__is_late_in_half_of_all_cases(void**) {
  Stand stand;
  Time now = kStart;
  int late = 0;
  for (int i = 0; i < 400; i++) {
    stand.receive(Operation::kReadRequest, now);
    stand.engine->packets = 1;
    late += stand.transmit(now) == 0 ? 1 : 0;
    now += 2 * kLongest;
    stand.transmit(now);
    now += 2 * kLongest;
    stand.transmit(now);
  }
  assert_in_range(late, 100, 300);
}

void post_send__the_peer_would_give_up_soon__is_never_late(void**) {
  Stand stand;
  stand.engine->timeout = 1;
  for (int i = 0; i < 100; i++) {
    stand.weak->post_send({});
    stand.engine->packets = 1;
    stand.transmit(kStart);
    assert_int_equal(stand.weak->deadline(), kNever);
  }
}

void post_send__same_seed__same_waits(void**) {
  const auto waits = [](uint64_t seed) {
    Stand stand(seed);
    Time sum = 0;
    for (Time now = kStart; now < 100 * kStart; now += kStart) {
      stand.weak->post_send({});
      stand.transmit(now);
      if (stand.weak->deadline() != kNever) sum = 3 * sum + stand.weak->deadline() - now;
      stand.transmit(now + kLongest);
    }
    return sum;
  };
  assert_int_equal(waits(1), waits(1));
  assert_int_not_equal(waits(1), waits(2));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(receive__bytes_of_a_write__are_whole_at_the_deadline),
      cmocka_unit_test(receive__anything_behind_a_write__finds_its_bytes),
      cmocka_unit_test(receive__a_write_with_immediate_data__is_whole_at_once),
      cmocka_unit_test(receive__answers_and_the_rest_of_the_write__leave_bytes_out),
      cmocka_unit_test(modify__to_the_error_state__is_preceded_by_the_bytes),
      cmocka_unit_test(transmit__many_packets__pauses_and_goes_on),
      cmocka_unit_test(transmit__after_a_read_request__is_late_in_half_of_all_cases),
      cmocka_unit_test(post_send__the_peer_would_give_up_soon__is_never_late),
      cmocka_unit_test(post_send__same_seed__same_waits),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
