// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/numbered_queue_pair.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "provider/member/counters_file.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "roce/packet/packet.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple;
using namespace dapple::soft;
using namespace dapple::soft::check;
using roce::Operation;
using roce::QpState;
using roce::Time;

constexpr uint32_t kSlot = 1, kQpn = kSlot << kLargeSlotBits | 1, kPeer = kSlot << kLargeSlotBits | 2;
constexpr uint64_t kOwnHost = 0x51, kPeersHost = 0x52;
constexpr Time kStart = 5'000'000'000;

class Engine final : public roce::QueuePair {
 public:
  bool modify(const roce::QpAttributes& attributes, uint32_t) override {
    state_ = attributes.state;
    return true;
  }
  roce::QpAttributes attributes() const override { return {.path_mtu = mtu, .destination_qpn = kPeer}; }
  roce::PostError post_send(const roce::SendRequest&) override { return roce::PostError::kNone; }
  roce::PostError check_send(const roce::SendRequest&, uint32_t) const override { return roce::PostError::kNone; }
  void receives_posted() override {}
  void receive(roce::Now, const roce::Packet&) override {
    received++;
    if (fails) state_ = QpState::kError;
  }
  // The packet, once.
  bool transmit(roce::Now, roce::PacketSink& sink) override {
    if (!next) return false;
    std::byte front[roce::kMaxHeaderSize];
    const size_t size = roce::write_headers({*next}, front);
    std::byte* const to = sink.reserve(size);
    if (to == nullptr) return true;
    memcpy(to, front, size);
    sink.commit(nullptr);
    next.reset();
    return false;
  }
  Time deadline() const override { return roce::kNever; }
  void expire(roce::Now) override {}
  roce::Owes owes() const override { return roce::Owes::kMore; }
  void observed_by(roce::RequestObserver&) override {}
  const roce::QpCounters& counters() const override { return counted; }
  uint64_t outstanding_sends() const override { return 0; }

  void send(Operation operation, uint32_t psn) {
    next.emplace();
    next->opcode = roce::opcode_of(roce::Transport::kRc, operation);
    next->psn = psn;
  }

  roce::QpCounters counted;
  std::optional<roce::Headers> next;
  uint32_t mtu = 1024;
  int received = 0;
  bool fails = false;  // by the next packet
};

// The opcodes of the packets.
class Network final : public roce::PacketSink {
 public:
  std::byte* reserve(size_t size) override {
    if (room == 0) return nullptr;
    packet.assign(size, std::byte{0});
    return packet.data();
  }
  void commit(const roce::AddressVector*) override {
    room--;
    opcodes.push_back(std::to_integer<uint8_t>(packet[0]));
  }

  size_t room = SIZE_MAX;
  std::vector<std::byte> packet;
  std::vector<uint8_t> opcodes;
};

uint8_t rc(Operation operation) {
  return roce::opcode_of(roce::Transport::kRc, operation);
}

struct Stand {
  OwnedFd file = make_counters_file();
  Races races;
  Qp qp;
  const BiasedLock lock{qp.mutex};
  Engine* engine = new Engine;
  Network network;
  std::unique_ptr<NumberedQueuePair> numbered;

  explicit Stand(ibv_qp_type type = IBV_QPT_RC) {
    races.open(file.get(), kSlot, kOwnHost);
    qp.qpn = kQpn;
    qp.init.qp_type = type;
    qp.transport.path.destination[15] = 2;
    numbered = std::make_unique<NumberedQueuePair>(std::unique_ptr<Engine>(engine), races, qp);
    for (const QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts})
      assert_true(numbered->modify({.state = state}, roce::kState));
  }
  // The question goes out, and the peer's host answers.
  void ask() {
    assert_false(numbered->transmit(kStart, network));
    assert_int_equal(network.opcodes.size(), 1);
    const auto question = read_mark_question(std::span(network.packet).last(kMarkMadSize));
    assert_true(question.has_value());
    races.answered(kQpn, {.transaction = question->transaction, .host = kPeersHost});
    network.opcodes.clear();
  }
  // A Read, for the engine to send.
  void post(uint32_t psn) {
    races.post(kQpn, {.opcode = roce::SendOpcode::kRead, .is_told = true, .first_psn = psn, .packets = 1}, {});
    engine->send(Operation::kReadRequest, psn);
  }
  // The program learns of requests of so many queue pairs.
  void learn(uint32_t count) {
    for (uint32_t qpn = kQpn + 10; qpn < kQpn + 10 + count; qpn++) {
      races.post(qpn, {.opcode = roce::SendOpcode::kWrite, .is_signaled = true}, {});
      (void)races.sent(qpn, 0, true);
      races.polled(qpn, false, 0);
    }
  }
};

void transmit__request_to_a_host_that_takes_marks__has_one_ahead(void**) {
  Stand stand;
  stand.ask();
  stand.post(0);
  assert_false(stand.numbered->transmit(kStart, stand.network));
  const std::vector<uint8_t> sent = {roce::kHostOpcode, rc(Operation::kReadRequest)};
  assert_true(stand.network.opcodes == sent);
}

// The network might drop the mark, and with it the packets of the same system call.
void transmit__mark_longer_than_the_mtu__is_left_out(void**) {
  for (const uint32_t count : {12, 13}) {
    Stand stand;
    stand.engine->mtu = 256;
    stand.ask();
    stand.learn(count);
    stand.post(0);
    assert_false(stand.numbered->transmit(kStart, stand.network));
    std::vector<uint8_t> sent = {rc(Operation::kReadRequest)};
    if (count == 12) sent.insert(sent.begin(), roce::kHostOpcode);
    assert_true(stand.network.opcodes == sent);
  }
}

// The queue pair enters the error state by itself, and still has a NAK to send.
void transmit__packets_found_no_room_before_an_error__they_go_first(void**) {
  Stand stand;
  stand.ask();
  stand.engine->send(Operation::kReadResponseOnly, 0);
  class Full final : public roce::PacketSink {
   public:
    std::byte* reserve(size_t) override { return nullptr; }
    void commit(const roce::AddressVector*) override {}
  } full;
  assert_true(stand.numbered->transmit(kStart, full));
  assert_false(stand.engine->next.has_value());
  stand.engine->fails = true;
  roce::Packet packet;
  packet.info = &roce::opcode_info(rc(Operation::kSendOnly));
  stand.numbered->receive(kStart, packet);
  assert_int_equal(stand.numbered->state(), QpState::kError);
  stand.engine->send(Operation::kAcknowledge, 1);
  assert_false(stand.numbered->transmit(kStart, stand.network));
  const std::vector<uint8_t> sent = {rc(Operation::kReadResponseOnly), rc(Operation::kAcknowledge)};
  assert_true(stand.network.opcodes == sent);
}

// A layer above may keep transmit() from this one for a while. Meanwhile nobody waits for a time that has passed.
void expire__question_is_due__it_waits_for_transmit(void**) {
  Stand stand;
  assert_false(stand.numbered->transmit(kStart, stand.network));
  const Time due = stand.numbered->deadline();
  assert_true(due > kStart && due != roce::kNever);
  stand.numbered->expire(due);
  assert_true(stand.numbered->deadline() > due);
  stand.network.opcodes.clear();
  assert_false(stand.numbered->transmit(due + 1, stand.network));
  assert_int_equal(stand.network.opcodes.size(), 1);
  assert_true(read_mark_question(std::span(stand.network.packet).last(kMarkMadSize)).has_value());
}

void receive__frame_of_a_raw_packet_queue_pair__goes_to_the_engine(void**) {
  Stand stand(IBV_QPT_RAW_PACKET);
  stand.numbered->receive(kStart, roce::Packet{});
  assert_int_equal(stand.engine->received, 1);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(transmit__request_to_a_host_that_takes_marks__has_one_ahead),
      cmocka_unit_test(transmit__mark_longer_than_the_mtu__is_left_out),
      cmocka_unit_test(transmit__packets_found_no_room_before_an_error__they_go_first),
      cmocka_unit_test(expire__question_is_due__it_waits_for_transmit),
      cmocka_unit_test(receive__frame_of_a_raw_packet_queue_pair__goes_to_the_engine),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
