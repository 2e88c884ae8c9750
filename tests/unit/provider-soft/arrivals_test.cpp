// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/arrivals.hpp"

#include <string.h>

#include <initializer_list>

#include "tests/unit/provider-soft/progress_rig.hpp"

using namespace dapple::soft;
using namespace dapple::tests;
using dapple::roce::Owes;
using dapple::roce::QpState;

namespace {

constexpr uint32_t kFirst = 5 << 16;
constexpr uint32_t kMoreThanTouched = 70;
constexpr uint8_t kOwn[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
constexpr uint8_t kPeer[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 2};
constexpr uint8_t kStranger[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 3};

struct ArrivalsRig : ProgressRig {
  std::unique_ptr<QpTable> table = std::make_unique<QpTable>(kFirst >> 16, 7);
  Multicast multicast{wire};
  BiasedMutex receiving{LockRank::kReceiving};
  const BiasedLock lock{receiving};
  Arrivals arrivals{*table, multicast, engines, counters, receiving};

  ArrivalsRig() { begin(Worker::kPoller); }
  void begin(Worker worker) {
    arrivals.begin_pass();
    engines.held.begin_pass(worker);
  }
  Qp& connect() {
    Qp& qp = make_qp();
    assert_int_not_equal(table->add(qp), 0);
    memcpy(qp.transport.path.source, kOwn, 16);
    memcpy(qp.transport.path.destination, kPeer, 16);
    engine_of(qp).set_state(QpState::kRts);
    engine_of(qp).owed = Owes::kMore;
    QpTable::open(qp);
    return qp;
  }
  void send(uint32_t qpn, const uint8_t* from = kPeer, uint16_t pkey = 0xFFFF) {
    dapple::roce::Bth bth;
    bth.opcode = dapple::roce::opcode_of(dapple::roce::Transport::kRc, dapple::roce::Operation::kSendOnly);
    bth.destination_qpn = qpn;
    bth.pkey = pkey;
    std::byte packet[dapple::roce::kBthSize] = {};
    dapple::roce::write_bth(bth, packet);
    deliver(packet, from);
  }
  void deliver(std::span<const std::byte> packet, const uint8_t* from) {
    Arrival arrival;
    arrival.source = from;
    arrival.destination = kOwn;
    arrival.transport = arrival.headers = packet;
    arrivals.arrived(arrival);
  }
};

ArrivalsRig* rig = nullptr;

int make_rig(void**) {
  rig = new ArrivalsRig;
  return 0;
}

int drop_rig(void**) {
  for (auto& each : rig->qps) rig->engines.timers.remove(*each);
  delete rig;
  return 0;
}

void arrived__packets_of_one_queue_pair__are_finished_together(void**) {
  Qp& qp = rig->connect();
  rig->send(qp.qpn);
  rig->send(qp.qpn);
  assert_int_equal(ProgressRig::engine_of(qp).received, 2);
  assert_int_equal(ProgressRig::engine_of(qp).transmitted, 0);
  assert_true(qp.scheduling.touched);
  rig->arrivals.finish_all();
  assert_int_equal(ProgressRig::engine_of(qp).transmitted, 1);
  assert_false(qp.scheduling.touched);
  rig->arrivals.finish_all();
  assert_int_equal(ProgressRig::engine_of(qp).transmitted, 1);
}

void arrived__nothing_is_owed__sends_nothing(void**) {
  Qp& qp = rig->connect();
  ProgressRig::engine_of(qp).owed = Owes::kNothing;
  ProgressRig::engine_of(qp).next = 99;
  rig->send(qp.qpn);
  rig->arrivals.finish_all();
  assert_int_equal(ProgressRig::engine_of(qp).transmitted, 0);
  assert_int_equal(rig->engines.timers.earliest(), 99);
}

void arrived__much__is_finished_before_the_end(void**) {
  Qp& qp = rig->connect();
  rig->send(qp.qpn);
  rig->arrivals.much_arrived();
  assert_int_equal(ProgressRig::engine_of(qp).transmitted, 1);
}

void arrived__more_queue_pairs_than_have_room__finishes_those_before(void**) {
  for (uint32_t i = 0; i < kMoreThanTouched; ++i) rig->send(rig->connect().qpn);
  rig->arrivals.finish_all();
  for (auto& qp : rig->qps) {
    assert_int_equal(ProgressRig::engine_of(*qp).received, 1);
    assert_int_equal(ProgressRig::engine_of(*qp).transmitted, 1);
    assert_false(qp->scheduling.touched);
  }
}

void arrived__from_a_stranger__is_counted_only(void**) {
  Qp& qp = rig->connect();
  rig->send(qp.qpn, kStranger);
  assert_int_equal(ProgressRig::engine_of(qp).received, 0);
  assert_int_equal(rig->counters.node.wrong_address.value(), 1);
}

void arrived__for_nobody__is_counted(void**) {
  Qp& qp = rig->connect();
  rig->send(qp.qpn + 1);
  assert_int_equal(rig->counters.node.no_queue_pair.value(), 1);
}

void arrived__another_partition__is_counted(void**) {
  Qp& qp = rig->connect();
  rig->send(qp.qpn, kPeer, 0x8001);
  assert_int_equal(rig->counters.node.wrong_pkey.value(), 1);
  assert_int_equal(ProgressRig::engine_of(qp).received, 0);
}

void arrived__no_packet__is_counted(void**) {
  const std::byte nonsense[dapple::roce::kBthSize] = {std::byte{0xFF}};
  rig->deliver(nonsense, kPeer);
  assert_int_equal(rig->counters.node.malformed.value(), 1);
}

// QP 1 of the peer's host answers a question, whatever becomes of the peer.
void arrived__datagram_for_a_connection__is_no_packet_of_its_peer(void**) {
  Qp& qp = rig->connect();
  qp.layers.peers_packets = std::make_unique<PeersPackets>();
  dapple::roce::Headers headers;
  headers.opcode = dapple::roce::opcode_of(dapple::roce::Transport::kUd, dapple::roce::Operation::kSendOnly);
  headers.destination_qpn = qp.qpn;
  headers.deth = {.qkey = 1, .source_qpn = 1};
  std::byte packet[dapple::roce::kMaxHeaderSize];
  rig->deliver(std::span(packet).first(dapple::roce::write_headers(headers, packet)), kPeer);
  assert_int_equal(ProgressRig::engine_of(qp).received, 1);
  assert_false(qp.layers.peers_packets->any);
  rig->send(qp.qpn);
  assert_true(qp.layers.peers_packets->any);
}

// Between hosts, about the packets that follow. This program does not know what they mean.
void arrived__mark__is_dropped_and_no_fault(void**) {
  Qp& qp = rig->connect();
  std::byte mark[dapple::roce::kBthSize + 8] = {};
  dapple::roce::write_bth({.opcode = dapple::roce::kHostOpcode, .destination_qpn = qp.qpn}, mark);
  for (const uint8_t* from : {kPeer, kStranger}) rig->deliver(mark, from);
  dapple::roce::write_bth({.opcode = dapple::roce::kHostOpcode, .destination_qpn = qp.qpn + 1}, mark);
  rig->deliver(mark, kPeer);
  assert_int_equal(rig->counters.node.malformed.value(), 0);
  assert_int_equal(rig->counters.node.no_queue_pair.value(), 0);
  assert_int_equal(ProgressRig::engine_of(qp).received, 0);
  assert_int_equal(ProgressRig::engine_of(qp).for_host, 1);
  // Not a whole word.
  rig->deliver(std::span(mark).first(dapple::roce::kBthSize + 3), kPeer);
  assert_int_equal(rig->counters.node.malformed.value(), 1);
}

}  // namespace

int main() {
#define IN_A_RIG(test) cmocka_unit_test_setup_teardown(test, make_rig, drop_rig)
  const CMUnitTest tests[] = {
      IN_A_RIG(arrived__packets_of_one_queue_pair__are_finished_together),
      IN_A_RIG(arrived__nothing_is_owed__sends_nothing),
      IN_A_RIG(arrived__much__is_finished_before_the_end),
      IN_A_RIG(arrived__more_queue_pairs_than_have_room__finishes_those_before),
      IN_A_RIG(arrived__from_a_stranger__is_counted_only),
      IN_A_RIG(arrived__for_nobody__is_counted),
      IN_A_RIG(arrived__another_partition__is_counted),
      IN_A_RIG(arrived__no_packet__is_counted),
      IN_A_RIG(arrived__datagram_for_a_connection__is_no_packet_of_its_peer),
      IN_A_RIG(arrived__mark__is_dropped_and_no_fault),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
