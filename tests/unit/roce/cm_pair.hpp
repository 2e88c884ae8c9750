// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two connection managers: `client` connects, `server` listens. A test carries each datagram by hand.
#pragma once

#include "roce/cm/exponent.hpp"
#include "tests/roce-support/cm_node.hpp"
#include "tests/roce-support/cm_samples.hpp"
#include "tests/unit/provider/rig.hpp"

namespace dapple::roce::cm::test {

inline constexpr uint16_t kPort = 7174;
inline constexpr uint64_t kService = service_id_of(PortSpace::kTcp, kPort);
inline constexpr uint64_t kDatagramService = service_id_of(PortSpace::kUdp, kPort);
// From a REQ's default fields: 2^17 for two ways and 2^20 for the answer.
inline constexpr Time kPeriod = wait_of(17) + wait_of(20);
inline constexpr unsigned kSendings = 16;

struct Pair {
  Node client{1};
  Node server{2};
  Time now = 1'000'000'000;
  Id listener = kNoId;
  Id active = kNoId;
  Id passive = kNoId;
  uint32_t next_qpn = 100;

  // Delivers one datagram, and checks its kind.
  void carry(Node& from, Node& to, Attribute attribute) {
    const Datagram datagram = from.sent();
    assert_int_equal(datagram.attribute(), attribute);
    to.take(now, datagram);
  }
  void lose(Node& from, Attribute attribute) { assert_int_equal(from.sent().attribute(), attribute); }

  SeenEvent expect(Node& node, EventType type, bool last = false) {
    const SeenEvent event = node.seen();
    assert_int_equal(event.type, type);
    assert_int_equal(event.last, last);
    return event;
  }

  // Advances to the next deadline of either.
  void wait() {
    const Time next = std::min(client.cm->deadline(), server.cm->deadline());
    assert_true(next != kNever && next >= now);
    now = next;
    client.cm->advance(now);
    server.cm->advance(now);
  }

  void listen(const ListenParameters& parameters = {.service_id = kService, .user = 77}) {
    assert_int_equal(server.cm->listen(parameters, listener), Status::kOk);
  }

  Req req() {
    Req req;
    req.service_id = kService;
    req.qpn = next_qpn++;
    req.psn = 0x123456;
    req.local_gid = ipv4_gid(1);
    req.remote_gid = ipv4_gid(2);
    count_up(req.private_data, 1);
    write_ip_header(sample_ip_header(false), req.private_data);
    return req;
  }

  void connect() { assert_int_equal(client.cm->connect(now, 11, client.path_to(server), req(), active), Status::kOk); }

  // Runs up to kConnectRequest at the server.
  void request() {
    if (listener == kNoId) listen();
    connect();
    carry(client, server, Attribute::kReq);
    passive = expect(server, EventType::kConnectRequest).id;
    assert_int_equal(server.cm->set_user(passive, 22), Status::kOk);
  }

  void accept() {
    Rep rep;
    rep.qpn = next_qpn++;
    count_up(rep.private_data, 3);
    assert_int_equal(server.cm->accept(now, passive, rep), Status::kOk);
  }

  // Runs up to kResponse at the client.
  void respond() {
    request();
    accept();
    carry(server, client, Attribute::kRep);
    expect(client, EventType::kResponse);
  }

  void establish() {
    respond();
    assert_int_equal(client.cm->establish(now, active, {}), Status::kOk);
    carry(client, server, Attribute::kRtu);
    expect(server, EventType::kEstablished);
  }

  void assert_quiet() {
    assert_true(client.out.empty() && server.out.empty());
    assert_true(client.events.empty() && server.events.empty());
  }

  // All ids are destroyed, and nothing of them is left after all time-outs.
  void assert_nothing_left() {
    for (int i = 0; i < 1000 && std::min(client.cm->deadline(), server.cm->deadline()) != kNever; ++i) {
      wait();
      client.out.clear();
      server.out.clear();
    }
    assert_int_equal(client.cm->records() + server.cm->records(), 0);
    assert_int_equal(client.cm->remembered() + server.cm->remembered(), 0);
    assert_int_equal(client.cm->half_open() + server.cm->half_open(), 0);
  }

  void destroy_both() {
    assert_int_equal(client.cm->destroy(now, active), Status::kOk);
    assert_int_equal(server.cm->destroy(now, passive), Status::kOk);
  }
};

inline Pair& pair_of(void** state) {
  return dapple::tests::rig_of<Pair>(state);
}

}  // namespace dapple::roce::cm::test

#define CM_TEST(function) rig_test(function, dapple::roce::cm::test::Pair)
