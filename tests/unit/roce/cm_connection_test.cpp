// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Connections whose datagrams all arrive: each command and message in each state.
#include <initializer_list>

#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

void connect__listener__request_with_all_of_the_req(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.connect();
  const Req sent = message_of<Req>(pair.client.out.front());
  assert_int_equal(sent.ca_guid, 0xCA000001);
  assert_int_not_equal(sent.comm_id, 0);
  pair.carry(pair.client, pair.server, Attribute::kReq);
  const SeenEvent event = pair.expect(pair.server, EventType::kConnectRequest);
  assert_true(event.req == sent);
  assert_int_equal(event.listener, pair.listener);
  assert_int_equal(event.user, 77);
  assert_true(event.path.remote == ipv4_gid(1) && event.path.local == ipv4_gid(2));
  // The form in which the kernel delivers it: after the IP header.
  assert_true(event.has_ip && event.ip == sample_ip_header(false));
  assert_int_equal(event.private_data.size(), 56);
  assert_int_equal(event.private_data[0], std::byte{1 + kIpHeaderSize});
  assert_int_equal(pair.server.cm->half_open(), 1);
}

void connect__service_without_ip_header__all_private_data(void** state) {
  Pair& pair = pair_of(state);
  pair.listen({.service_id = 0x1234567890});
  Req req = pair.req();
  req.service_id = 0x1234567890;
  pair.client.cm->connect(pair.now, 1, pair.client.path_to(2), req, pair.active);
  pair.carry(pair.client, pair.server, Attribute::kReq);
  const SeenEvent event = pair.expect(pair.server, EventType::kConnectRequest);
  assert_false(event.has_ip);
  assert_int_equal(event.private_data.size(), 92);
}

void accept__response_and_establish__both_established(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.cm->listeners(), 1);
  assert_int_equal(pair.client.cm->listeners(), 0);
  pair.accept();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  const SeenEvent response = pair.expect(pair.client, EventType::kResponse);
  assert_int_equal(response.id, pair.active);
  assert_int_equal(response.user, 11);
  assert_int_equal(response.private_data.size(), 196);
  assert_int_equal(response.rep.ca_guid, 0xCA000002);
  assert_int_equal(pair.server.cm->half_open(), 1);

  std::array<std::byte, 224> data;
  count_up(data, 9);
  assert_int_equal(pair.client.cm->establish(pair.now, pair.active, data), Status::kOk);
  pair.carry(pair.client, pair.server, Attribute::kRtu);
  const SeenEvent established = pair.expect(pair.server, EventType::kEstablished);
  assert_int_equal(pair.client.cm->counters().established, 1);
  assert_int_equal(pair.server.cm->counters().established, 1);
  assert_int_equal(pair.server.cm->destroy(pair.now, pair.listener), Status::kOk);
  assert_int_equal(pair.server.cm->listeners(), 0);
  assert_int_equal(established.id, pair.passive);
  assert_int_equal(established.user, 22);
  assert_int_equal(established.private_data.size(), 224);
  assert_memory_equal(established.private_data.data(), data.data(), data.size());
  assert_int_equal(pair.server.cm->half_open(), 0);
  pair.assert_quiet();
  // No timer runs while it lasts.
  assert_true(pair.client.cm->deadline() == dapple::roce::kNever);
  assert_true(pair.server.cm->deadline() == dapple::roce::kNever);
}

// MRA, REP and RTU repeat the REQ's transaction; REQ and DREQ have their own.
void transactions__echoed(void** state) {
  Pair& pair = pair_of(state);
  const auto transaction = [](const Datagram& datagram) {
    MadView view;
    return open_mad(datagram.mad, view) == MadError::kNone ? view.transaction : 0;
  };
  pair.listen();
  pair.connect();
  const uint64_t first = transaction(pair.client.out.front());
  pair.carry(pair.client, pair.server, Attribute::kReq);
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.server.cm->prolong(pair.now, pair.passive, 20);
  assert_int_equal(transaction(pair.server.out.front()), first);
  pair.carry(pair.server, pair.client, Attribute::kMra);
  pair.accept();
  assert_int_equal(transaction(pair.server.out.front()), first);
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.client.cm->establish(pair.now, pair.active, {});
  assert_int_equal(transaction(pair.client.out.front()), first);
  pair.carry(pair.client, pair.server, Attribute::kRtu);
  pair.client.cm->disconnect(pair.now, pair.active, {});
  const uint64_t second = transaction(pair.client.out.front());
  assert_int_not_equal(second, first);
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  assert_int_equal(transaction(pair.server.out.front()), second);
}

void disconnect__either_side__disconnected_then_timewait_exit(void** state) {
  for (const bool by_client : {true, false}) {
    Pair pair;
    pair.establish();
    Node& first = by_client ? pair.client : pair.server;
    Node& second = by_client ? pair.server : pair.client;
    std::array<std::byte, 220> data;
    count_up(data, 5);
    const Id first_id = by_client ? pair.active : pair.passive;
    assert_int_equal(first.cm->disconnect(pair.now, first_id, data), Status::kOk);
    pair.carry(first, second, Attribute::kDreq);
    const SeenEvent event = pair.expect(second, EventType::kDisconnected);
    assert_int_equal(event.private_data.size(), 220);
    assert_memory_equal(event.private_data.data(), data.data(), data.size());
    pair.carry(second, first, Attribute::kDrep);
    pair.expect(first, EventType::kDisconnected);
    pair.assert_quiet();
    const uint64_t before = pair.now;
    pair.wait();
    assert_int_equal(pair.now - before, wait_of(17));
    pair.expect(first, EventType::kTimewaitExit, true);
    pair.expect(second, EventType::kTimewaitExit, true);
    assert_int_equal(first.cm->records(), 1);
    pair.destroy_both();
    pair.assert_quiet();
    pair.assert_nothing_left();
  }
  (void)state;
}

void disconnect__crossing__both_disconnected_once(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  pair.server.cm->disconnect(pair.now, pair.passive, {});
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.carry(pair.server, pair.client, Attribute::kDreq);
  pair.expect(pair.client, EventType::kDisconnected);
  pair.expect(pair.server, EventType::kDisconnected);
  pair.carry(pair.client, pair.server, Attribute::kDrep);
  pair.carry(pair.server, pair.client, Attribute::kDrep);
  pair.assert_quiet();
  pair.wait();
  pair.expect(pair.client, EventType::kTimewaitExit, true);
  pair.expect(pair.server, EventType::kTimewaitExit, true);
  pair.destroy_both();
  pair.assert_nothing_left();
}

void note_established__rep_sent__no_rtu_needed(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  assert_int_equal(pair.server.cm->note_established(pair.now, pair.passive), Status::kOk);
  assert_int_equal(pair.expect(pair.server, EventType::kEstablished).private_data.size(), 0);
  pair.client.cm->establish(pair.now, pair.active, {});
  pair.carry(pair.client, pair.server, Attribute::kRtu);
  pair.assert_quiet();
  assert_int_equal(pair.server.cm->note_established(pair.now, pair.passive), Status::kWrongState);
}

void commands__wrong_state_or_id__refused_without_a_datagram(void** state) {
  Pair& pair = pair_of(state);
  Manager& client = *pair.client.cm;
  Manager& server = *pair.server.cm;
  pair.request();
  const auto all = [&](Manager& cm, Id id, Status expected) {
    assert_int_equal(cm.establish(pair.now, id, {}), expected);
    assert_int_equal(cm.note_established(pair.now, id), expected);
    assert_int_equal(cm.disconnect(pair.now, id, {}), expected);
    assert_int_equal(cm.answer(pair.now, id, {}), expected);
  };
  all(client, pair.active, Status::kWrongState);
  assert_int_equal(client.accept(pair.now, pair.active, {}), Status::kWrongState);
  assert_int_equal(client.prolong(pair.now, pair.active, 1), Status::kWrongState);
  assert_int_equal(client.reject(pair.now, pair.active, RejectReason::kConsumer, {}, {}), Status::kWrongState);
  all(server, pair.passive, Status::kWrongState);
  for (const Id id : {kNoId, Id{1}, ~Id{0}, pair.passive + 1, pair.passive + (Id{1} << 32), pair.listener}) {
    all(server, id, Status::kNoSuchId);
    assert_int_equal(server.accept(pair.now, id, {}), Status::kNoSuchId);
    assert_int_equal(server.prolong(pair.now, id, 1), Status::kNoSuchId);
    assert_int_equal(server.reject(pair.now, id, RejectReason::kConsumer, {}, {}), Status::kNoSuchId);
    if (id != pair.listener) assert_int_equal(server.destroy(pair.now, id), Status::kNoSuchId);
  }
  pair.assert_quiet();
}

void commands__too_much_private_data__refused_and_nothing_changed(void** state) {
  Pair& pair = pair_of(state);
  const std::array<std::byte, 256> data{};
  const Data all(data);
  pair.respond();
  Manager& client = *pair.client.cm;
  Manager& server = *pair.server.cm;
  assert_int_equal(server.reject(pair.now, pair.passive, RejectReason::kConsumer, {}, all.first(149)),
                   Status::kTooLong);
  assert_int_equal(server.reject(pair.now, pair.passive, RejectReason::kConsumer, all.first(73), {}), Status::kTooLong);
  assert_int_equal(client.establish(pair.now, pair.active, all.first(225)), Status::kTooLong);
  assert_int_equal(client.establish(pair.now, pair.active, all.first(224)), Status::kOk);
  assert_int_equal(client.disconnect(pair.now, pair.active, all.first(221)), Status::kTooLong);
  assert_int_equal(client.disconnect(pair.now, pair.active, all.first(220)), Status::kOk);
}

void connect__other_services__unsupported(void** state) {
  Pair& pair = pair_of(state);
  for (const Service service : {Service::kReliableDatagram, Service::kExtended}) {
    Req req = pair.req();
    req.service = service;
    assert_int_equal(pair.client.cm->connect(pair.now, 1, pair.client.path_to(2), req, pair.active),
                     Status::kUnsupported);
  }
  pair.assert_quiet();
  assert_int_equal(pair.client.cm->records(), 0);
}

// Both ends of one host's connections are in the same manager.
void connect__to_itself__both_established(void** state) {
  Pair& pair = pair_of(state);
  Node& node = pair.server;
  pair.listen();
  assert_int_equal(node.cm->connect(pair.now, 11, node.path_to(node), pair.req(), pair.active), Status::kOk);
  pair.carry(node, node, Attribute::kReq);
  pair.passive = pair.expect(node, EventType::kConnectRequest).id;
  pair.accept();
  pair.carry(node, node, Attribute::kRep);
  assert_int_equal(pair.expect(node, EventType::kResponse).id, pair.active);
  node.cm->establish(pair.now, pair.active, {});
  pair.carry(node, node, Attribute::kRtu);
  assert_int_equal(pair.expect(node, EventType::kEstablished).id, pair.passive);
  node.cm->disconnect(pair.now, pair.passive, {});
  pair.carry(node, node, Attribute::kDreq);
  assert_int_equal(pair.expect(node, EventType::kDisconnected).id, pair.active);
  pair.carry(node, node, Attribute::kDrep);
  assert_int_equal(pair.expect(node, EventType::kDisconnected).id, pair.passive);
  node.cm->destroy(pair.now, pair.active);
  node.cm->destroy(pair.now, pair.passive);
  pair.assert_nothing_left();
}

void restore__saved_state__only_one_that_its_side_can_have(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  Saved active, passive;
  assert_int_equal(pair.client.cm->save(pair.active, active), Status::kOk);
  assert_int_equal(pair.server.cm->save(pair.passive, passive), Status::kOk);
  Node fresh(1);
  Id restored = kNoId;
  const auto restore = [&](Saved saved, State as, bool on_active_side) {
    saved.state = as;
    saved.active = on_active_side;
    return fresh.cm->restore(pair.now, 33, saved, restored);
  };
  for (const State as : {State::kReqSent, State::kRepReceived}) {
    assert_int_equal(restore(active, as, false), Status::kWrongState);
  }
  for (const State as : {State::kReqReceived, State::kRepSent}) {
    assert_int_equal(restore(passive, as, true), Status::kWrongState);
  }
  for (const State as : {State::kClosed, State::kRejected, State::kSidrReqSent, State::kSidrReqReceived,
                         State::kSidrAnswered, static_cast<State>(255)}) {
    assert_int_equal(restore(active, as, true), Status::kWrongState);
    assert_int_equal(restore(passive, as, false), Status::kWrongState);
  }
  assert_int_equal(fresh.cm->records(), 0);
  assert_int_equal(restore(active, active.state, true), Status::kOk);
  assert_int_equal(restore(active, active.state, true), Status::kInUse);
  assert_int_equal(fresh.cm->destroy(pair.now, restored), Status::kOk);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      CM_TEST(connect__listener__request_with_all_of_the_req),
      CM_TEST(connect__service_without_ip_header__all_private_data),
      CM_TEST(accept__response_and_establish__both_established),
      CM_TEST(transactions__echoed),
      CM_TEST(disconnect__either_side__disconnected_then_timewait_exit),
      CM_TEST(disconnect__crossing__both_disconnected_once),
      CM_TEST(note_established__rep_sent__no_rtu_needed),
      CM_TEST(commands__wrong_state_or_id__refused_without_a_datagram),
      CM_TEST(commands__too_much_private_data__refused_and_nothing_changed),
      CM_TEST(connect__other_services__unsupported),
      CM_TEST(connect__to_itself__both_established),
      CM_TEST(restore__saved_state__only_one_that_its_side_can_have),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
