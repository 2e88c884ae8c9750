// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Listeners, limits, floods, and malicious datagrams.
#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

// A stranger's REQ; each has ids of its own.
Datagram stranger(uint32_t number, uint64_t service_id = kService) {
  Req req;
  req.comm_id = 0x10000 + number;
  req.ca_guid = 0xBAD;
  req.qpn = 0x1000 + number;
  req.service_id = service_id;
  write_ip_header(sample_ip_header(false), req.private_data);
  const Node node(9);
  return {node.path_to(2), make_mad(number, req)};
}

void listen__same_place_twice__in_use(void** state) {
  Pair& pair = pair_of(state);
  ListenParameters parameters;
  parameters.service_id = kService;
  Id id = kNoId;
  pair.listen(parameters);
  assert_int_equal(pair.server.cm->listen(parameters, id), Status::kInUse);
  parameters.device = 3;
  assert_int_equal(pair.server.cm->listen(parameters, id), Status::kOk);
  parameters.address = ipv4_gid(2);
  assert_int_equal(pair.server.cm->listen(parameters, id), Status::kOk);
  assert_int_equal(pair.server.cm->destroy(pair.now, id), Status::kOk);
  assert_int_equal(pair.server.cm->destroy(pair.now, id), Status::kNoSuchId);
  assert_int_equal(pair.server.cm->listen(parameters, id), Status::kOk);
}

void listen__limit__no_room(void** state) {
  Limits limits;
  limits.listeners = 40;
  const Node node(1, limits);
  ListenParameters parameters;
  std::vector<Id> ids;
  for (parameters.service_id = 0; parameters.service_id < 40; ++parameters.service_id) {
    ids.push_back(kNoId);
    assert_int_equal(node.cm->listen(parameters, ids.back()), Status::kOk);
  }
  Id id = kNoId;
  assert_int_equal(node.cm->listen(parameters, id), Status::kNoRoom);
  node.cm->destroy(0, ids[20]);
  assert_int_equal(node.cm->listen(parameters, id), Status::kOk);
  assert_int_not_equal(id, ids[20]);
  assert_int_equal(node.cm->destroy(0, ids[20]), Status::kNoSuchId);
  (void)state;
}

void listen__narrowest_listener_gets_the_request(void** state) {
  Pair& pair = pair_of(state);
  ListenParameters parameters;
  parameters.service_id = kService;
  const auto add = [&](uint64_t user) {
    parameters.user = user;
    pair.listen(parameters);
    return pair.listener;
  };
  uint32_t number = 0;
  const auto user_of_next = [&] {
    pair.server.take(pair.now, stranger(number++));
    return pair.expect(pair.server, EventType::kConnectRequest).user;
  };
  add(1);
  assert_int_equal(user_of_next(), 1);
  parameters.family = Family::kIpv4;
  add(2);
  assert_int_equal(user_of_next(), 2);
  parameters.family = Family::kIpv6;
  add(3);
  assert_int_equal(user_of_next(), 2);
  parameters.family = Family::kBoth;
  parameters.device = 3;  // the server's
  const Id by_device = add(4);
  assert_int_equal(user_of_next(), 4);
  parameters.device = 4;
  add(5);
  assert_int_equal(user_of_next(), 4);
  parameters.device.reset();
  parameters.address = ipv4_gid(2);
  const Id by_address = add(6);
  assert_int_equal(user_of_next(), 6);
  parameters.address = ipv4_gid(3);
  add(7);
  assert_int_equal(user_of_next(), 6);
  pair.server.cm->destroy(pair.now, by_address);
  assert_int_equal(user_of_next(), 4);
  pair.server.cm->destroy(pair.now, by_device);
  assert_int_equal(user_of_next(), 2);
}

void listen__mask__range_of_services(void** state) {
  Pair& pair = pair_of(state);
  ListenParameters parameters;
  parameters.service_id = service_id_of(PortSpace::kTcp, 0x4000);
  parameters.service_mask = ~uint64_t{0xFF};
  pair.listen(parameters);
  pair.server.take(pair.now, stranger(1, service_id_of(PortSpace::kTcp, 0x40AB)));
  pair.expect(pair.server, EventType::kConnectRequest);
  pair.server.take(pair.now, stranger(2, service_id_of(PortSpace::kTcp, 0x4100)));
  assert_true(pair.server.events.empty());
}

void flood__backlog__dropped_silently_and_others_unharmed(void** state) {
  Pair& pair = pair_of(state);
  ListenParameters parameters;
  parameters.service_id = service_id_of(PortSpace::kTcp, 1);
  parameters.backlog = 5;
  pair.listen(parameters);
  parameters.service_id = kService;
  pair.listen(parameters);
  for (uint32_t i = 0; i < 10000; ++i) pair.server.take(pair.now, stranger(i, service_id_of(PortSpace::kTcp, 1)));
  assert_int_equal(pair.server.events.size(), 5);
  assert_int_equal(pair.server.cm->records(), 5);
  assert_int_equal(pair.server.cm->counters().over_backlog, 9995);
  assert_true(pair.server.out.empty());
  const Id waiting = pair.server.events.front().id;
  pair.server.events.clear();
  // The other listener is not affected.
  pair.establish();
  // A place in the backlog is free again once the consumer has decided.
  pair.server.cm->reject(pair.now, waiting, RejectReason::kConsumer, {}, {});
  pair.server.take(pair.now, stranger(20000, service_id_of(PortSpace::kTcp, 1)));
  pair.expect(pair.server, EventType::kConnectRequest);
}

void flood__half_open_limit__dropped_and_established_unharmed(void** state) {
  Limits limits;
  limits.half_open = 10;
  limits.records = 30;
  Pair& pair = pair_of(state);
  pair.establish();
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  server.cm->listen(parameters, pair.listener);
  for (uint32_t i = 0; i < 1000; ++i) {
    server.take(pair.now, stranger(i));
    // A consumer accepts everything, and the connections stay half open.
    while (!server.events.empty()) server.cm->accept(pair.now, server.seen().id, {});
  }
  assert_int_equal(server.cm->half_open(), 10);
  assert_int_equal(server.cm->records(), 10);
  assert_int_equal(server.cm->counters().over_limit, 990);
  // They time out by themselves.
  const auto run_out = [&] {
    while (server.cm->deadline() != dapple::roce::kNever) server.cm->advance(server.cm->deadline());
  };
  run_out();
  assert_int_equal(server.cm->half_open(), 0);
  assert_int_equal(server.events.size(), 10);
  while (!server.events.empty()) {
    const SeenEvent event = server.seen();
    assert_true(event.type == EventType::kUnreachable && event.last);
    server.cm->destroy(pair.now, event.id);
  }
  run_out();
  assert_int_equal(server.cm->records(), 0);
}

void flood__one_listener__others_get_requests(void** state) {
  Limits limits;
  limits.half_open = 40;
  limits.half_open_each = 10;
  Pair& pair = pair_of(state);
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  server.cm->listen(parameters, pair.listener);
  Id other = kNoId;
  parameters.service_id = kService + 1;
  server.cm->listen(parameters, other);
  for (uint32_t i = 0; i < 1000; ++i) {
    server.take(pair.now, stranger(i));
    while (!server.events.empty()) server.cm->accept(pair.now, server.seen().id, {});
  }
  assert_int_equal(server.cm->half_open(), 10);
  assert_int_equal(server.cm->counters().over_limit, 990);
  // A request for the other listener.
  Req req = sample_req();
  req.service = Service::kReliable;
  req.service_id = kService + 1;
  Id id = kNoId;
  assert_int_equal(pair.client.cm->connect(pair.now, 0, pair.client.path_to(2), req, id), Status::kOk);
  server.take(pair.now, pair.client.sent());
  assert_int_equal(server.events.size(), 1);
  const SeenEvent event = server.seen();
  assert_true(event.type == EventType::kConnectRequest && event.listener == other);
}

void flood__rejected_at_once__remembers_so_many_and_keeps_connections(void** state) {
  Limits limits;
  limits.records = 20;
  limits.half_open = 20;
  limits.remembered = 8;
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  Id listener = kNoId;
  server.cm->listen(parameters, listener);
  server.take(1, stranger(0));
  const Id kept = server.seen().id;
  server.cm->accept(1, kept, {});
  for (uint32_t i = 1; i < 1000; ++i) {
    server.take(1, stranger(i));
    const Id id = server.seen().id;
    server.cm->destroy(1, id);
    assert_in_range(server.cm->remembered(), 1, 8);
  }
  assert_int_equal(server.cm->records(), 9);
  assert_int_equal(server.cm->counters().forgotten, 999 - 8);
  assert_int_equal(server.cm->counters().over_limit, 0);
  assert_int_equal(server.cm->note_established(2, kept), Status::kOk);
  (void)state;
}

void records__all_taken__no_room_until_one_is_free(void** state) {
  Pair& pair = pair_of(state);
  Limits limits;
  limits.records = 100;
  const Node node(1, limits);
  std::vector<Id> ids(101);
  for (int i = 0; i < 100; ++i)
    assert_int_equal(node.cm->connect(1, 0, node.path_to(2), pair.req(), ids[i]), Status::kOk);
  assert_int_equal(node.cm->connect(1, 0, node.path_to(2), pair.req(), ids[100]), Status::kNoRoom);
  assert_int_equal(node.cm->resolve(1, 0, node.path_to(2), {}, 20, 1, ids[100]), Status::kNoRoom);
  node.cm->destroy(1, ids[50]);
  assert_int_equal(node.cm->connect(1, 0, node.path_to(2), pair.req(), ids[100]), Status::kOk);
  assert_int_not_equal(ids[100], ids[50]);
  assert_int_equal(node.cm->destroy(1, ids[50]), Status::kNoSuchId);
}

void records__all_taken_and_one_destroyed__the_destroyed_one_gives_way(void** state) {
  (void)state;
  Limits limits;
  limits.records = 2;
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  Id listener = kNoId;
  server.cm->listen(parameters, listener);
  server.take(1, stranger(1));
  const Id kept = server.seen().id;
  server.take(1, stranger(2));
  server.cm->destroy(1, server.seen().id);
  assert_int_equal(server.cm->records(), 2);
  server.take(1, stranger(3));
  assert_int_equal(server.seen().type, EventType::kConnectRequest);
  assert_int_equal(server.cm->counters().forgotten, 1);
  assert_int_equal(server.cm->remembered(), 0);
  server.take(1, stranger(4));
  assert_true(server.events.empty());
  assert_int_equal(server.cm->counters().over_limit, 1);
  assert_int_equal(server.cm->destroy(1, kept), Status::kOk);
}

void set_user__listener__next_request(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  assert_int_equal(pair.server.cm->set_user(pair.listener, 5), Status::kOk);
  pair.server.take(pair.now, stranger(1));
  assert_int_equal(pair.expect(pair.server, EventType::kConnectRequest).user, 5);
  assert_int_equal(pair.server.cm->set_user(pair.listener + 1, 5), Status::kNoSuchId);
}

void receive__no_messages__counted_and_never_answered(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  const Mad good = stranger(1).mad;
  uint64_t malformed = 0;
  const auto receive = [&](std::span<const std::byte> bytes) {
    pair.server.cm->receive(pair.now, pair.server.path_to(1), bytes);
    assert_int_equal(pair.server.cm->counters().malformed, ++malformed);
  };
  for (const size_t size : {0, 1, 23, 24, 255}) receive(std::span(good).first(size));
  for (const size_t at : {0, 1, 2, 3, 16}) {
    Mad bad = good;
    bad[at] ^= std::byte{0x80};
    receive(bad);
  }
  for (const int attribute : {0x19, 0x1A}) {
    Mad path = good;
    path[17] = static_cast<std::byte>(attribute);
    pair.server.cm->receive(pair.now, pair.server.path_to(1), path);
  }
  assert_int_equal(pair.server.cm->counters().unsupported, 2);
  assert_int_equal(pair.server.cm->records(), 0);
  pair.assert_quiet();
}

// A stranger at another address who has seen all ids.
void receive__right_ids_from_another_host__ignored(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  pair.client.cm->establish(pair.now, pair.active, {});
  const Rtu rtu = message_of<Rtu>(pair.client.sent());
  const Node other(66);
  Rej rej;
  rej.comm_id = rtu.comm_id;
  rej.remote_comm_id = rtu.remote_comm_id;
  rej.subject = Subject::kOther;
  Mra mra;
  mra.comm_id = rtu.comm_id;
  mra.remote_comm_id = rtu.remote_comm_id;
  mra.subject = Subject::kRep;
  Dreq dreq;
  dreq.comm_id = rtu.comm_id;
  dreq.remote_comm_id = rtu.remote_comm_id;
  dreq.remote_qpn = 101;
  Drep drep;
  drep.comm_id = rtu.comm_id;
  drep.remote_comm_id = rtu.remote_comm_id;
  const uint64_t before = pair.server.cm->deadline();
  for (const Mad& mad : {make_mad(1, rtu), make_mad(1, rej), make_mad(1, mra), make_mad(1, dreq), make_mad(1, drep)})
    pair.server.take(pair.now, {other.path_to(2), mad});
  assert_int_equal(pair.server.cm->counters().foreign, 5);
  assert_true(pair.server.cm->deadline() == before);
  pair.assert_quiet();
}

void dreq__wrong_queue_pair__ignored(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  Dreq dreq = message_of<Dreq>(pair.client.sent());
  ++dreq.remote_qpn;
  pair.server.take(pair.now, {pair.client.path_to(2), make_mad(1, dreq)});
  assert_int_equal(pair.server.cm->counters().unexpected, 1);
  pair.assert_quiet();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      CM_TEST(listen__same_place_twice__in_use),
      CM_TEST(listen__limit__no_room),
      CM_TEST(listen__narrowest_listener_gets_the_request),
      CM_TEST(listen__mask__range_of_services),
      CM_TEST(flood__backlog__dropped_silently_and_others_unharmed),
      CM_TEST(flood__half_open_limit__dropped_and_established_unharmed),
      CM_TEST(flood__one_listener__others_get_requests),
      CM_TEST(flood__rejected_at_once__remembers_so_many_and_keeps_connections),
      CM_TEST(records__all_taken__no_room_until_one_is_free),
      CM_TEST(records__all_taken_and_one_destroyed__the_destroyed_one_gives_way),
      CM_TEST(set_user__listener__next_request),
      CM_TEST(receive__no_messages__counted_and_never_answered),
      CM_TEST(receive__right_ids_from_another_host__ignored),
      CM_TEST(dreq__wrong_queue_pair__ignored),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
