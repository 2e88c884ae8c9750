// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Listeners, limits, floods, and malicious datagrams.
#include <initializer_list>

#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;
using dapple::roce::kNever;
using dapple::roce::Time;

namespace {

// A stranger's REQ; each has ids of its own.
Datagram stranger(uint32_t number, uint64_t service_id = kService, uint8_t host = 9) {
  Req req;
  req.comm_id = 0x10000 + number;
  req.ca_guid = 0xBAD;
  req.qpn = 0x1000 + number;
  req.service_id = service_id;
  write_ip_header(sample_ip_header(false), req.private_data);
  Path path = Node(9).path_to(2);
  path.local = ipv4_gid(host);
  return {path, make_mad(number, req)};
}

// The answer of the consumer of `server` to a stranger's REQ: the id that it has accepted.
Id accept_stranger(Node& server, Time now, const Datagram& req) {
  server.take(now, req);
  const SeenEvent event = server.seen();
  assert_int_equal(event.type, EventType::kConnectRequest);
  assert_int_equal(server.cm->accept(now, event.id, {}), Status::kOk);
  return event.id;
}

// The RTU of a peer that has got this REP.
Datagram rtu_for(const Datagram& rep) {
  const Rep answered = message_of<Rep>(rep);
  Datagram rtu{rep.path, make_mad(1, Rtu{.comm_id = answered.remote_comm_id, .remote_comm_id = answered.comm_id})};
  std::swap(rtu.path.local, rtu.path.remote);
  return rtu;
}

void run_out(Node& node) {
  while (node.cm->deadline() != kNever) node.cm->advance(node.cm->deadline());
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

void flood__unconfirmed_limit__the_oldest_goes_and_a_real_peer_gets_through(void** state) {
  Limits limits;
  limits.unconfirmed = 10;
  Pair& pair = pair_of(state);
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  server.cm->listen(parameters, pair.listener);
  std::vector<Id> accepted;
  // Each stranger asks from another address. The consumer accepts everything.
  for (uint32_t i = 0; i < 100; ++i) {
    if (i >= 10) {
      // The oldest one has given way, and its consumer knows.
      server.take(pair.now, stranger(i, kService, static_cast<uint8_t>(10 + i)));
      const Id id = server.seen().id;
      assert_int_equal(server.cm->accept(pair.now, id, {}), Status::kOk);
      const SeenEvent gone = server.seen();
      assert_true(gone.type == EventType::kUnreachable && gone.last);
      assert_int_equal(gone.id, accepted[i - 10]);
      assert_int_equal(server.cm->destroy(pair.now, gone.id), Status::kOk);
      accepted.push_back(id);
    } else {
      accepted.push_back(accept_stranger(server, pair.now, stranger(i, kService, static_cast<uint8_t>(10 + i))));
    }
    assert_true(server.events.empty());
  }
  assert_int_equal(server.cm->unconfirmed(), 10);
  assert_int_equal(server.cm->counters().evicted, 90);
  assert_int_equal(server.cm->counters().over_limit, 0);
  // A real peer's handshake is complete before ten others have come.
  server.out.clear();
  const Id real = accept_stranger(server, pair.now, stranger(1000));
  const Datagram rep = server.sent();
  server.events.clear();
  for (uint32_t i = 200; i < 209; ++i) {
    server.take(pair.now, stranger(i, kService, static_cast<uint8_t>(i)));
    server.cm->accept(pair.now, server.seen().id, {});
    server.events.clear();
  }
  server.take(pair.now, rtu_for(rep));
  const SeenEvent established = server.seen();
  assert_true(established.type == EventType::kEstablished && established.id == real);
  run_out(server);
  assert_int_equal(server.cm->half_open(), 0);
}

void flood__unconfirmed_limit__one_source_gives_way_to_others(void** state) {
  Limits limits;
  limits.unconfirmed_each = 10;
  Pair& pair = pair_of(state);
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  server.cm->listen(parameters, pair.listener);
  const Id real = accept_stranger(server, pair.now, stranger(0, kService, 50));
  const Datagram rep = server.sent();
  for (uint32_t i = 1; i < 500; ++i) {
    server.take(pair.now, stranger(i, kService, 51));
    server.cm->accept(pair.now, server.seen().id, {});
    while (!server.events.empty()) assert_int_not_equal(server.seen().id, real);
  }
  assert_int_equal(server.cm->unconfirmed(), 10);
  server.take(pair.now, rtu_for(rep));
  assert_int_equal(server.seen().type, EventType::kEstablished);
}

void flood__waiting_requests__do_not_give_way(void** state) {
  Limits limits;
  limits.pending_each = 5;
  limits.unconfirmed_each = 5;
  Pair& pair = pair_of(state);
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  server.cm->listen(parameters, pair.listener);
  std::vector<Id> waiting;
  for (uint32_t i = 0; i < 100; ++i) {
    server.take(pair.now, stranger(i));
    while (!server.events.empty()) waiting.push_back(server.seen().id);
  }
  assert_int_equal(waiting.size(), 5);
  assert_int_equal(server.cm->counters().over_limit, 95);
  assert_int_equal(server.cm->counters().evicted, 0);
  for (const Id id : waiting) assert_int_equal(server.cm->accept(pair.now, id, {}), Status::kOk);
  assert_true(server.events.empty());
}

// The peer of a connection that gave way is told when it confirms, and may ask again if it has not.
void evicted__peer_confirms_late_or_asks_again(void** state) {
  Limits limits;
  limits.unconfirmed = 1;
  Pair& pair = pair_of(state);
  Node server(2, limits);
  ListenParameters parameters;
  parameters.service_id = kService;
  server.cm->listen(parameters, pair.listener);
  const Id first = accept_stranger(server, pair.now, stranger(0));
  const Datagram first_rep = server.sent();
  accept_stranger(server, pair.now, stranger(1));
  const Datagram second_rep = server.sent();
  assert_int_equal(server.seen().id, first);
  server.cm->destroy(pair.now, first);
  assert_true(server.out.empty());
  // Its REQ comes again and is a new one, and the second one gives way.
  const Id again = accept_stranger(server, pair.now, stranger(0));
  assert_int_not_equal(again, first);
  assert_int_equal(server.seen().type, EventType::kUnreachable);
  server.out.clear();
  server.take(pair.now, rtu_for(second_rep));
  assert_int_equal(message_of<Dreq>(server.out.front()).remote_comm_id, message_of<Rep>(second_rep).remote_comm_id);
  server.out.clear();
  server.take(pair.now, rtu_for(first_rep));
  assert_int_equal(server.sent().attribute(), Attribute::kDreq);
  assert_true(server.events.empty());
}

// One REQ with the shortest time-outs and the most repetitions, from a forged address.
void forged_req__at_most_16_reps_and_one_rej_not_faster_than_one_a_second(void** state) {
  for (const bool destroyed : {false, true}) {
    Pair pair;
    pair.listen();
    Req req = pair.req();
    req.comm_id = 5;
    req.ca_guid = 6;
    req.local_response_timeout = req.remote_response_timeout = req.ack_timeout = 0;
    req.max_cm_retries = 15;
    pair.server.take(pair.now, {pair.client.path_to(2), make_mad(1, req)});
    pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
    pair.accept();
    unsigned reps = 0, rejs = 0;
    Time last = 0;
    for (;;) {
      while (!pair.server.out.empty()) {
        const Attribute attribute = pair.server.sent().attribute();
        assert_true(attribute == Attribute::kRep || attribute == Attribute::kRej);
        ++(attribute == Attribute::kRep ? reps : rejs);
        last = pair.now;
      }
      if (destroyed && reps == 3) pair.server.cm->destroy(pair.now, pair.passive);
      if (destroyed && reps == 3 && rejs == 0) {
        assert_int_equal(pair.server.sent().attribute(), Attribute::kRej);
        ++rejs;
      }
      if (pair.server.cm->deadline() == kNever) break;
      pair.wait();
    }
    assert_int_equal(reps + rejs, 17);
    if (!destroyed) assert_int_equal(rejs, 1);
    assert_true(last >= 1'000'000'000 + 15 * kMinWaitForPeer);
  }
  (void)state;
}

void forged_req__longest_time_outs__forgotten_soon(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  Req req = pair.req();
  req.comm_id = 5;
  req.ca_guid = 6;
  req.local_response_timeout = req.remote_response_timeout = req.ack_timeout = 31;
  req.max_cm_retries = 15;
  pair.server.take(pair.now, {pair.client.path_to(2), make_mad(1, req)});
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.accept();
  const Time before = pair.now;
  while (pair.server.events.empty()) pair.wait();
  pair.expect(pair.server, EventType::kUnreachable, true);
  assert_true(pair.now - before <= 16 * kMaxWaitForPeer);
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.server.out.clear();
  while (pair.server.cm->deadline() != kNever) pair.wait();
  assert_true(pair.now - before <= 16 * kMaxWaitForPeer + kMaxHold);
  assert_int_equal(pair.server.cm->records(), 0);
  assert_true(pair.server.out.empty());
}

void req__one_long_wait__gets_its_time_by_shorter_ones(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  Req req = pair.req();
  req.comm_id = 5;
  req.ca_guid = 6;
  req.local_response_timeout = 22;  // 17 s
  req.max_cm_retries = 0;
  pair.server.take(pair.now, {pair.client.path_to(2), make_mad(1, req)});
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.accept();
  const Time before = pair.now;
  while (pair.server.events.empty()) pair.wait();
  pair.expect(pair.server, EventType::kUnreachable, true);
  assert_int_equal(pair.now - before, 3 * kMaxWaitForPeer);
}

void ignore__request__comes_again_as_a_new_one(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.cm->ignore(pair.passive), Status::kOk);
  assert_int_equal(pair.server.cm->ignore(pair.passive), Status::kNoSuchId);
  assert_int_equal(pair.server.cm->counters().over_backlog, 1);
  assert_int_equal(pair.server.cm->records(), 0);
  assert_true(pair.server.out.empty());
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kReq);
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.accept();
  assert_int_equal(pair.server.cm->ignore(pair.passive), Status::kWrongState);
}

void flood__rejected_at_once__remembers_so_many_and_keeps_connections(void** state) {
  Limits limits;
  limits.records = 20;
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
      CM_TEST(flood__unconfirmed_limit__the_oldest_goes_and_a_real_peer_gets_through),
      CM_TEST(flood__unconfirmed_limit__one_source_gives_way_to_others),
      CM_TEST(flood__waiting_requests__do_not_give_way),
      CM_TEST(evicted__peer_confirms_late_or_asks_again),
      CM_TEST(forged_req__at_most_16_reps_and_one_rej_not_faster_than_one_a_second),
      CM_TEST(forged_req__longest_time_outs__forgotten_soon),
      CM_TEST(req__one_long_wait__gets_its_time_by_shorter_ones),
      CM_TEST(ignore__request__comes_again_as_a_new_one),
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
