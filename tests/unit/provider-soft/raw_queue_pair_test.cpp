// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/raw_queue_pair.hpp"

#include <errno.h>
#include <string.h>

#include <deque>
#include <string>
#include <vector>

#include "provider/soft/raw/checksums.hpp"
#include "roce/packet/packet.hpp"
#include "tests/unit/provider-soft/udp_frame.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::tests;
using namespace dapple::roce;

namespace {

constexpr uint32_t kGoodKey = 1;

// Memory of this process under one key.
struct OwnMemory final : Memory {
  Fault check_remote(Accessor, const RemoteRange&, uint32_t) override { return Fault::kAccess; }
  Fault write(Accessor, const RemoteRange&, const std::byte*) override { return Fault::kAccess; }
  Fault read(Accessor, const RemoteRange&, std::byte*) override { return Fault::kAccess; }
  Fault compare_swap(Accessor, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t&) override { return Fault::kAccess; }
  Fault fetch_add(Accessor, uint32_t, uint64_t, uint64_t, uint64_t&) override { return Fault::kAccess; }
  Fault atomic_write(Accessor, uint32_t, uint64_t, uint64_t) override { return Fault::kAccess; }
  Fault flush(Accessor, const RemoteRange&, uint32_t) override { return Fault::kAccess; }
  Fault check_local(Accessor, std::span<const Segment>, bool) override { return Fault::kAccess; }
  Fault gather(Accessor, std::span<const Segment> segments, uint64_t, std::byte* to, size_t) override {
    for (const Segment& segment : segments) {
      if (segment.lkey != kGoodKey) return Fault::kAccess;
      memcpy(to, reinterpret_cast<const void*>(segment.address), segment.length);
      to += segment.length;
    }
    return Fault::kNone;
  }
  Fault scatter(Accessor, std::span<const Segment> segments, uint64_t, const std::byte* from, size_t size) override {
    if (segments[0].lkey != kGoodKey) return Fault::kAccess;
    memcpy(reinterpret_cast<void*>(segments[0].address), from, size);
    return Fault::kNone;
  }
  Fault bind_window(Accessor, const WindowBind&) override { return Fault::kAccess; }
  Fault invalidate_local(Accessor, uint32_t) override { return Fault::kAccess; }
  Fault invalidate_remote(Accessor, uint32_t) override { return Fault::kAccess; }
};

struct Completions final : CompletionSink {
  std::vector<Completion> all;
  bool complete(const Completion& completion) override {
    all.push_back(completion);
    return true;
  }
};
struct Receives final : ReceiveSource {
  std::deque<WholeReceiveRequest> all;
  bool take(ReceiveRequest& request) override {
    if (all.empty()) return false;
    request = all.front();
    all.pop_front();
    return true;
  }
};
struct Events final : EventSink {
  void event(QpEvent, uint32_t) override {}
};
struct NoSink final : PacketSink {
  std::byte* reserve(size_t) override { return nullptr; }
  void commit(const AddressVector*) override {}
};

// Takes as many frames as there is room for, and fails then.
struct Sender final : FrameSender {
  std::vector<std::vector<std::byte>> frames;
  size_t room = SIZE_MAX;
  int then = EAGAIN;
  size_t send(std::span<const iovec> list, int& error) override {
    error = 0;
    for (size_t i = 0; i < list.size(); i++) {
      if (frames.size() == room) {
        error = then;
        return i;
      }
      const auto* bytes = static_cast<const std::byte*>(list[i].iov_base);
      frames.emplace_back(bytes, bytes + list[i].iov_len);
    }
    return list.size();
  }
};

struct Rig {
  OwnMemory memory;
  Completions sent, received;
  Receives receives;
  Events events;
  Sender sender;
  Pacer pacer;
  NoSink sink;
  std::unique_ptr<RawQueuePair> qp;
  FrameBytes frame = udp_frame(7);

  Rig() {
    const QpConfig config = {.qpn = 17,
                             .type = QpType::kRawPacket,
                             .domain = 1,
                             .send_depth = 64,
                             .max_send_segments = 2,
                             .max_inline = 100,
                             .signal_all = true};
    qp = RawQueuePair::create(config, memory, sent, received, receives, events, &sender, &pacer);
  }
  bool to(QpState state, uint32_t mask = 0) { return qp->modify({.state = state}, kState | mask); }
  bool ready() { return to(QpState::kInit, kPort) && to(QpState::kRtr) && to(QpState::kRts); }
  PostError post(uint64_t id, uint32_t size, uint8_t flags = 0, uint32_t key = kGoodKey) {
    const Segment segment = {reinterpret_cast<uintptr_t>(frame.bytes), size, key};
    SendRequest request;
    request.id = id;
    request.flags = flags;
    request.segments = {&segment, 1};
    return qp->post_send(request);
  }
  bool transmit(Time now = 1) { return qp->transmit(Now(now), sink); }
  // The number of frames that leave at that time, as the host's timers let them.
  size_t leave_at(Time now) {
    const size_t before = sender.frames.size();
    if (qp->deadline() <= now) qp->expire(Now(now));
    if (transmit(now)) return SIZE_MAX;
    return sender.frames.size() - before;
  }
  void take(std::span<const std::byte> bytes) {
    Packet packet;
    packet.payload = bytes;
    qp->receive(Now(1), packet);
  }
  void add_receive(void* to, uint32_t size, uint32_t key = kGoodKey) {
    WholeReceiveRequest& receive = receives.all.emplace_back();
    receive.id = receives.all.size() - 1;
    receive.segment_count = 1;
    receive.segments[0] = {reinterpret_cast<uintptr_t>(to), size, key};
  }
};

// cmocka's asserts leave a test by longjmp(), so the rig is not in its frame.
Rig* rig = nullptr;

int set_up(void**) {
  rig = new Rig;
  return rig->qp != nullptr && rig->ready() ? 0 : -1;
}
int tear_down(void**) {
  delete rig;
  return 0;
}

void modify__takes_a_port_and_nothing_else(void**) {
  assert_true(rig->to(QpState::kReset));
  assert_false(rig->to(QpState::kInit));
  assert_false(rig->to(QpState::kInit, kPort | kPkeyIndex));
  assert_true(rig->to(QpState::kInit, kPort));
  assert_false(rig->to(QpState::kRts));
  assert_int_equal(rig->post(1, 60), PostError::kState);
  assert_true(rig->to(QpState::kRtr));
  assert_false(rig->to(QpState::kRts, kSendPsn));
  assert_true(rig->to(QpState::kRts));
}

void transmit__frames_as_they_are(void**) {
  const auto size = static_cast<uint32_t>(rig->frame.size);
  assert_int_equal(rig->post(1, size), PostError::kNone);
  assert_int_equal(rig->post(2, 20, kInline), PostError::kNone);
  assert_int_equal(rig->post(3, size, kIpChecksum), PostError::kNone);
  memset(rig->frame.bytes, 0, 1);  // the inline bytes are the old ones
  assert_false(rig->transmit());
  assert_int_equal(rig->sender.frames.size(), 3);
  assert_memory_equal(rig->sender.frames[0].data(), rig->frame.bytes, size);
  // A short frame has zeros up to Ethernet's minimum.
  assert_int_equal(rig->sender.frames[1].size(), kShortestFrame);
  assert_int_equal(rig->sender.frames[1][0], 2);
  assert_int_equal(rig->sender.frames[1][20], 0);
  Frame frame;
  assert_true(parse_frame(rig->sender.frames[2], frame));
  assert_true(has_good_checksums(frame));
  assert_int_equal(rig->sent.all.size(), 3);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(rig->sent.all[i].request_id, i + 1);
    assert_int_equal(rig->sent.all[i].status, CompletionStatus::kSuccess);
  }
}

void transmit__goes_on_when_there_is_room(void**) {
  for (uint64_t id = 0; id < 50; id++) assert_int_equal(rig->post(id, 60), PostError::kNone);
  assert_int_equal(rig->post(50, 60), PostError::kNone);
  rig->sender.room = 40;
  assert_true(rig->transmit());
  assert_int_equal(rig->sent.all.size(), 40);
  assert_true(rig->transmit());
  rig->sender.room = SIZE_MAX;
  assert_false(rig->transmit());
  assert_int_equal(rig->sender.frames.size(), 51);
  assert_int_equal(rig->sent.all.back().request_id, 50);
}

void expect_failure(CompletionStatus status) {
  assert_false(rig->transmit());
  assert_int_equal(rig->sent.all.size(), 3);
  assert_int_equal(rig->sent.all[0].status, CompletionStatus::kSuccess);
  assert_int_equal(rig->sent.all[1].status, status);
  assert_int_equal(rig->sent.all[2].status, CompletionStatus::kFlushed);
  assert_int_equal(rig->qp->state(), QpState::kSqe);
  assert_true(rig->to(QpState::kRts));
}

void transmit__a_wrong_request_stops_the_queue(void**) {
  rig->post(1, 60);
  rig->post(2, 60, 0, kGoodKey + 1);
  rig->post(3, 60);
  expect_failure(CompletionStatus::kLocalProtection);
}

void transmit__a_frame_without_header_stops_the_queue(void**) {
  rig->post(1, 60);
  rig->post(2, 13);
  rig->post(3, 60);
  expect_failure(CompletionStatus::kLocalLength);
}

void transmit__a_frame_beyond_the_mtu_stops_the_queue(void**) {
  rig->post(1, 60);
  rig->post(2, 200);
  rig->post(3, 60);
  rig->sender.room = 1;
  rig->sender.then = EMSGSIZE;
  expect_failure(CompletionStatus::kLocalLength);
}

constexpr Time kStart = 1'000'000'000;
constexpr Time kUs = 1000;

// A byte takes a microsecond.
void transmit__with_a_rate__frames_leave_in_their_turn(void**) {
  rig->pacer.set(8000, 60);
  for (uint64_t id = 0; id < 5; id++) rig->post(id, 60);
  // The burst, and one frame more.
  assert_int_equal(rig->leave_at(kStart), 2);
  assert_int_equal(rig->sent.all.size(), 2);
  assert_int_equal(rig->qp->owes(), Owes::kNothing);
  assert_int_equal(rig->qp->deadline(), kStart + 60 * kUs);
  // Posts and packets call it early.
  assert_int_equal(rig->leave_at(kStart + 60 * kUs - 1), 0);
  assert_int_equal(rig->qp->deadline(), kStart + 60 * kUs);
  assert_int_equal(rig->leave_at(kStart + 60 * kUs), 1);
  assert_int_equal(rig->qp->deadline(), kStart + 120 * kUs);
  // A late call makes up for the time that it has lost.
  assert_int_equal(rig->leave_at(kStart + 500 * kUs), 2);
  assert_int_equal(rig->qp->deadline(), kNever);
  // After a pause the burst is there again.
  for (uint64_t id = 5; id < 8; id++) rig->post(id, 60);
  assert_int_equal(rig->leave_at(kStart + 2000 * kUs), 2);
}

void transmit__with_a_rate__never_exceeds_it(void**) {
  constexpr uint32_t kRate = 7777, kBurst = 1000;
  constexpr Time kSecond = 1'000'000 * kUs;
  rig->pacer.set(kRate, kBurst);
  uint64_t id = 0;
  for (Time now = kStart; now < kStart + kSecond; now += 37 * kUs) {
    while (rig->post(id, 60) == PostError::kNone) id++;
    assert_int_not_equal(rig->leave_at(now), SIZE_MAX);
  }
  const uint64_t bytes = rig->sender.frames.size() * 60;
  assert_in_range(bytes, kRate / 8 * 1000, kRate * 1000 / 8 + kBurst + 60);
}

// Another rate does not fill the bucket: what an earlier one owes is paid at this one.
void transmit__when_the_rate_changes__it_is_not_exceeded(void**) {
  rig->pacer.set(8000, 60);
  for (uint64_t id = 0; id < 6; id++) rig->post(id, 60);
  assert_int_equal(rig->leave_at(kStart), 2);
  // 120 bytes are owed. Twice as fast, a frame may leave when 60 are.
  rig->pacer.set(16000, 60);
  assert_int_equal(rig->leave_at(kStart), 0);
  assert_int_equal(rig->qp->deadline(), kStart + 30 * kUs);
  assert_int_equal(rig->leave_at(kStart + 30 * kUs), 1);
  // The same one again, with another burst.
  rig->pacer.set(16000, 120);
  assert_int_equal(rig->leave_at(kStart + 30 * kUs), 1);
  // 180 bytes, of which this rate sends one in a millisecond.
  rig->pacer.set(8, 60);
  assert_int_equal(rig->leave_at(kStart + 30 * kUs), 0);
  assert_int_equal(rig->qp->deadline(), kStart + 30 * kUs + 120'000 * kUs);
  // A limit that has ended owes nothing.
  rig->pacer.set(0);
  rig->pacer.set(8000, 60);
  assert_int_equal(rig->leave_at(kStart + 31 * kUs), 2);
}

void transmit__when_the_rate_ends__the_rest_leaves(void**) {
  rig->pacer.set(8, 60);
  for (uint64_t id = 0; id < 40; id++) rig->post(id, 60);
  assert_int_equal(rig->leave_at(kStart), 2);
  rig->pacer.set(0);
  assert_int_equal(rig->leave_at(kStart), 38);
  assert_int_equal(rig->qp->deadline(), kNever);
}

void reset__with_a_rate__waits_for_nothing(void**) {
  rig->pacer.set(8, 60);
  for (uint64_t id = 0; id < 4; id++) rig->post(id, 60);
  assert_int_equal(rig->leave_at(kStart), 2);
  assert_int_not_equal(rig->qp->deadline(), kNever);
  assert_true(rig->to(QpState::kReset));
  assert_int_equal(rig->qp->deadline(), kNever);
}

void error__with_a_rate__flushes_what_waits(void**) {
  rig->pacer.set(8, 60);
  for (uint64_t id = 0; id < 4; id++) rig->post(id, 60);
  assert_int_equal(rig->leave_at(kStart), 2);
  assert_true(rig->to(QpState::kError));
  assert_int_equal(rig->sent.all.size(), 4);
  assert_int_equal(rig->sent.all[3].status, CompletionStatus::kFlushed);
  assert_int_equal(rig->qp->deadline(), kNever);
}

void receive__into_the_next_receive(void**) {
  std::byte room[256] = {};
  rig->take(rig->frame.all());  // lost, because there is no receive
  assert_int_equal(rig->qp->counters().dropped_packets, 1);
  rig->add_receive(room, sizeof room);
  rig->add_receive(room, sizeof room);
  complete_checksums(rig->frame.all());
  rig->take(rig->frame.all());
  rig->frame.bytes[50] ^= std::byte{1};
  rig->frame.bytes[40] ^= std::byte{1};
  rig->take(rig->frame.all());
  assert_int_equal(rig->received.all.size(), 2);
  assert_int_equal(rig->received.all[0].opcode, CompletionOpcode::kReceive);
  assert_int_equal(rig->received.all[0].byte_count, rig->frame.size);
  assert_int_equal(rig->received.all[0].qpn, 17);
  assert_int_equal(rig->received.all[0].flags, kIpChecksumGood);
  assert_int_equal(rig->received.all[1].flags, 0);
  assert_memory_equal(room, rig->frame.bytes, rig->frame.size);
}

void receive__an_error_flushes_the_rest(void**) {
  std::byte room[256];
  rig->add_receive(room, 59);
  rig->add_receive(room, 200);
  rig->take(rig->frame.all());
  assert_int_equal(rig->received.all.size(), 2);
  assert_int_equal(rig->received.all[0].status, CompletionStatus::kLocalLength);
  assert_int_equal(rig->received.all[1].status, CompletionStatus::kFlushed);
  assert_int_equal(rig->qp->state(), QpState::kError);
  rig->take(rig->frame.all());
  assert_int_equal(rig->received.all.size(), 2);
}

void receive__a_wrong_key(void**) {
  std::byte room[256];
  rig->add_receive(room, 200, kGoodKey + 1);
  rig->take(rig->frame.all());
  assert_int_equal(rig->received.all[0].status, CompletionStatus::kLocalProtection);
  assert_int_equal(rig->qp->state(), QpState::kError);
}

// Somebody names the queue pair's number in a packet of RoCE.
void receive__a_packet_of_roce_is_ignored(void**) {
  std::byte room[256];
  rig->add_receive(room, 200);
  const OpcodeInfo info = {};
  Packet packet;
  packet.info = &info;
  packet.payload = rig->frame.all();
  rig->qp->receive(Now(1), packet);
  assert_int_equal(rig->received.all.size(), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(modify__takes_a_port_and_nothing_else, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__frames_as_they_are, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__goes_on_when_there_is_room, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__a_wrong_request_stops_the_queue, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__a_frame_without_header_stops_the_queue, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__a_frame_beyond_the_mtu_stops_the_queue, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__with_a_rate__frames_leave_in_their_turn, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__with_a_rate__never_exceeds_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__when_the_rate_changes__it_is_not_exceeded, set_up, tear_down),
      cmocka_unit_test_setup_teardown(transmit__when_the_rate_ends__the_rest_leaves, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reset__with_a_rate__waits_for_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(error__with_a_rate__flushes_what_waits, set_up, tear_down),
      cmocka_unit_test_setup_teardown(receive__into_the_next_receive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(receive__an_error_flushes_the_rest, set_up, tear_down),
      cmocka_unit_test_setup_teardown(receive__a_wrong_key, set_up, tear_down),
      cmocka_unit_test_setup_teardown(receive__a_packet_of_roce_is_ignored, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("raw_queue_pair", tests, nullptr, nullptr);
}
