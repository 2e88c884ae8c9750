// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled dies, and the next dappled takes over.
#include <initializer_list>

#include "provider/dappled/rdma_cm/journal.hpp"
#include "provider/protocol/messages.hpp"
#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

void restore__connection__stays(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  ib_uverbs_qp_attr before, after;
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTS, before), 0);
  pair.client.die(pair.active);
  pair.server.die(pair.passive);
  pair.client.assert_no_event(pair.active);
  pair.server.assert_no_event(pair.passive);
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTS, after), 0);
  assert_memory_equal(&before, &after, sizeof before);

  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
  pair.client.event(pair.active, EventKind::kDisconnected);
  assert_true(pair.wait());
  pair.client.event(pair.active, EventKind::kTimewaitExit);
  uint32_t reported = 0;
  assert_int_equal(pair.client.destroy(pair.active, pair.connecting, &reported), 0);
  assert_int_equal(reported, 5);
  pair.finish();
}

void restore__one_side__the_other_disconnects_it(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.server.die(pair.passive);
  pair.client.service->close(pair.client.now, pair.active);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
  pair.finish();
}

void restore__listener__listens_again(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.server.die(pair.passive);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  assert_int_equal(pair.server.event(pair.passive, EventKind::kConnectRequest).uid, 77);
  // Its port is in use as before.
  const uint32_t other = pair.server.create(pair.passive, RDMA_PS_TCP, 5);
  assert_int_equal(pair.server.bind(pair.passive, other, ipv4(2, 7174)), EADDRNOTAVAIL);
  pair.finish();
}

// Another program may have got the listener's number before the listener came back.
void restore__number_taken__both_ids_work(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listen();
  const Host::Journal journal = server.replace(pair.passive);
  Channel newcomer;
  uint32_t id = server.create(newcomer, RDMA_PS_TCP, 5);
  while (id != pair.listener) {
    assert_int_equal(server.destroy(newcomer, id), 0);
    id = server.create(newcomer, RDMA_PS_TCP, 5);
  }
  server.restore(pair.passive, journal);
  assert_int_equal(server.bind(newcomer, id, any_ipv4(7175)), 0);
  assert_int_equal(server.listen(newcomer, id), 0);

  pair.resolve();
  const uint32_t second = pair.client.create(pair.active, RDMA_PS_TCP, 12);
  assert_int_equal(pair.client.resolve(pair.active, second, ipv4(2, 7175)), 0);
  pair.client.event(pair.active, EventKind::kAddrResolved);
  assert_int_equal(pair.client.resolve_route(pair.active, second), 0);
  pair.client.event(pair.active, EventKind::kRouteResolved);
  for (const uint32_t connecting : {pair.connecting, second}) {
    assert_int_equal(pair.client.connect(pair.active, connecting, parameters(connecting)), 0);
    pair.carry();
  }
  assert_int_equal(server.event(pair.passive, EventKind::kConnectRequest).uid, 77);
  assert_int_equal(server.event(newcomer, EventKind::kConnectRequest).uid, 5);
  server.assert_no_event(pair.passive);
  server.assert_no_event(newcomer);

  // Each channel destroys its own, and the other's is left.
  assert_int_equal(server.destroy(newcomer, id), 0);
  ib_uverbs_qp_attr attributes;
  assert_int_equal(server.attributes(newcomer, id, IBV_QPS_INIT, attributes), EINVAL);
  const uint32_t other = server.create(pair.passive, RDMA_PS_TCP, 6);
  assert_int_equal(server.bind(pair.passive, other, any_ipv4(7174)), EADDRNOTAVAIL);
  server.service->close(server.now, newcomer);
  pair.finish();
}

// Another program listens at the port before the stopped listener's program comes to the next dappled.
void restore__port_of_a_listener_taken__its_program_is_told(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listen();
  const Host::Journal journal = server.replace(pair.passive);
  Channel newcomer;
  const uint32_t other = server.create(newcomer, RDMA_PS_TCP, 5);
  assert_int_equal(server.bind(newcomer, other, any_ipv4(7174)), 0);
  assert_int_equal(server.listen(newcomer, other), 0);
  const Restoration outcome = server.restore(pair.passive, journal);
  assert_int_equal(outcome.error, 0);
  assert_int_equal(outcome.lost_listeners, 1);
  assert_int_equal(outcome.lost_port, 7174);
  const auto event = server.event(pair.passive, EventKind::kDeviceRemoval);
  assert_int_equal(event.uid, 77);
  assert_int_not_equal(static_cast<int>(event.status), 0);
  assert_int_equal(server.listen(pair.passive, pair.listener), EINVAL);
  // It does not listen again when the next dappled dies, either.
  server.service->close(server.now, newcomer);
  const Host::Journal again = server.replace(pair.passive);
  assert_int_equal(server.restore(pair.passive, again).lost_listeners, 0);
  server.assert_no_event(pair.passive);
  assert_int_equal(server.service->manager().listeners(), 0);
  assert_int_equal(server.destroy(pair.passive, pair.listener), 0);
  pair.finish();
}

void restore__port_of_a_bound_id_taken__listening_fails_until_it_is_free(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  const uint32_t bound = server.create(pair.passive, RDMA_PS_TCP, 77);
  assert_int_equal(server.bind(pair.passive, bound, any_ipv4(7174)), 0);
  const Host::Journal journal = server.replace(pair.passive);
  Channel newcomer;
  const uint32_t other = server.create(newcomer, RDMA_PS_TCP, 5);
  assert_int_equal(server.bind(newcomer, other, any_ipv4(7174)), 0);
  assert_int_equal(server.restore(pair.passive, journal).lost_listeners, 0);
  server.assert_no_event(pair.passive);
  assert_int_equal(server.listen(pair.passive, bound), EADDRNOTAVAIL);
  assert_int_equal(server.destroy(newcomer, other), 0);
  assert_int_equal(server.listen(pair.passive, bound), 0);
  // The port is its own again.
  const uint32_t third = server.create(newcomer, RDMA_PS_TCP, 6);
  assert_int_equal(server.bind(newcomer, third, any_ipv4(7174)), EADDRNOTAVAIL);
  server.service->close(server.now, newcomer);
  pair.finish();
}

void restore__too_many_listeners__its_program_is_told(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listen();
  const Host::Journal journal = server.replace(pair.passive);
  Channel newcomer;
  for (uint32_t i = 0; i < cm::Limits{}.listeners; i++) {
    const uint32_t id = server.create(newcomer, RDMA_PS_TCP, 5);
    assert_int_equal(server.bind(newcomer, id, any_ipv4(static_cast<uint16_t>(10000 + i))), 0);
    assert_int_equal(server.listen(newcomer, id), 0);
  }
  assert_int_equal(server.restore(pair.passive, journal).lost_listeners, 1);
  assert_int_equal(static_cast<int>(server.event(pair.passive, EventKind::kDeviceRemoval).status), -ENOMEM);
  server.service->close(server.now, newcomer);
  pair.finish();
}

void restore__too_many_ids__reports_an_error(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listen();
  const Host::Journal journal = server.replace(pair.passive);
  Channel newcomer;
  for (uint32_t i = 0; i < IdTable::kMax; i++) server.create(newcomer, RDMA_PS_TCP, 5);
  assert_int_equal(server.restore(pair.passive, journal).error, ENOMEM);
  server.service->close(server.now, newcomer);
  assert_int_equal(server.service->ids(), 0);
}

void restore__device_is_gone__its_program_is_told(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const Host::Journal journal = pair.server.replace(pair.passive);
  pair.server.lose_device();
  pair.server.restore(pair.passive, journal);
  pair.server.event(pair.passive, EventKind::kDeviceRemoval);
  pair.server.assert_no_event(pair.passive);
}

void restore__comm_id_taken__is_disconnected(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const Host::Journal journal = pair.server.replace(pair.passive);
  Channel copy;
  pair.server.restore(copy, journal);
  pair.server.restore(pair.passive, journal);
  pair.server.event(pair.passive, EventKind::kDeviceRemoval);  // the listener's
  assert_int_equal(static_cast<int>(pair.server.event(pair.passive, EventKind::kDisconnected).status), -ECONNRESET);
  pair.server.service->close(pair.server.now, copy);
}

void restore__comm_id_in_time_wait_taken__time_wait_is_over(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
  const Host::Journal journal = pair.server.replace(pair.passive);
  Channel copy;
  pair.server.restore(copy, journal);
  pair.server.restore(pair.passive, journal);
  pair.server.event(pair.passive, EventKind::kDeviceRemoval);  // the listener's
  pair.server.event(pair.passive, EventKind::kTimewaitExit);
  pair.server.service->close(pair.server.now, copy);
}

void restore__unread_events__come_again(void** state) {
  Pair& pair = pair_of(state);
  pair.connecting = pair.client.create(pair.active, RDMA_PS_TCP, 11);
  assert_int_equal(pair.client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  pair.client.die(pair.active);
  assert_int_equal(pair.client.event(pair.active, EventKind::kAddrResolved).uid, 11);
  pair.client.die(pair.active);
  pair.client.assert_no_event(pair.active);
  assert_int_equal(pair.client.resolve_route(pair.active, pair.connecting), 0);
  pair.client.event(pair.active, EventKind::kRouteResolved);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
}

void restore__request_sent__is_unreachable(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  pair.accepted = pair.server.event(pair.passive, EventKind::kConnectRequest).id;
  pair.client.die(pair.active);
  const auto event = pair.client.event(pair.active, EventKind::kUnreachable);
  assert_int_equal(static_cast<int>(event.status), -ECONNRESET);
  // The server's side is gone, too.
  pair.carry();
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(2)), EINVAL);
  pair.finish();
}

void restore__response_unanswered__is_an_error(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  pair.client.die(pair.active);
  pair.client.event(pair.active, EventKind::kConnectError);
  assert_int_equal(pair.client.accept(pair.active, pair.connecting, 11, {}), EINVAL);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kRejected);
  pair.finish();
}

void restore__response_unread__is_one_error(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(2)), 0);
  pair.carry();
  pair.client.die(pair.active);
  pair.client.event(pair.active, EventKind::kConnectError);
  pair.client.assert_no_event(pair.active);
}

void restore__accepted_without_rtu__is_an_error(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(2)), 0);
  pair.server.die(pair.passive);
  const auto event = pair.server.event(pair.passive, EventKind::kConnectError);
  assert_int_equal(event.uid, 22);
  pair.finish();
}

void restore__unread_request__goes_with_its_dappled(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  pair.server.die(pair.passive);
  assert_int_equal(pair.server.service->ids(), 1);
  pair.server.assert_no_event(pair.passive);
  // The client sends its request again.
  assert_true(pair.wait());
  pair.carry();
  pair.server.event(pair.passive, EventKind::kConnectRequest);
  pair.finish();
}

// The requests that waited when the listener was last written wait no more.
// Packets come before the channels for which they are meant.
void restore__disconnected_before__its_program_hears_of_it(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const Host::Journal journal = pair.server.replace(pair.passive);
  pair.server.service->expect_channels(pair.server.now + Service::kArrival);
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.client.assert_no_event(pair.active);
  pair.server.restore(pair.passive, journal);
  assert_true(pair.wait());
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
  pair.client.event(pair.active, EventKind::kDisconnected);
  pair.finish();
}

void restore__requested_before__its_listener_answers(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  const Host::Journal journal = pair.server.replace(pair.passive);
  pair.server.service->expect_channels(pair.server.now + Service::kArrival);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  pair.client.assert_no_event(pair.active);
  pair.server.restore(pair.passive, journal);
  assert_true(pair.wait());
  pair.carry();
  pair.server.event(pair.passive, EventKind::kConnectRequest);
  pair.finish();
}

void restore__nothing_came__peers_are_refused(void** state) {
  Pair& pair = pair_of(state);
  pair.server.service->expect_channels(pair.server.now + Service::kArrival);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  pair.client.assert_no_event(pair.active);
  assert_true(pair.wait());
  pair.carry();
  pair.client.event(pair.active, EventKind::kRejected);
}

void restore__listener_with_unread_requests__has_its_whole_backlog(void** state) {
  Pair& pair = pair_of(state);
  pair.listener = pair.server.create(pair.passive, RDMA_PS_TCP, 77);
  assert_int_equal(pair.server.bind(pair.passive, pair.listener, any_ipv4(7174)), 0);
  assert_int_equal(pair.server.listen(pair.passive, pair.listener, 3), 0);
  const auto connect_three = [&pair] {
    for (uint32_t i = 1; i <= 3; i++) {
      pair.resolve();
      assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(i)), 0);
      pair.carry();
    }
  };
  connect_three();
  pair.server.event(pair.passive, EventKind::kConnectRequest);
  pair.server.die(pair.passive);
  pair.client.service->close(pair.client.now, pair.active);
  pair.carry();
  connect_three();
  for (int i = 0; i < 3; i++) pair.server.event(pair.passive, EventKind::kConnectRequest);
}

void restore__disconnecting__goes_on(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.client.die(pair.active);
  pair.carry();
  pair.client.event(pair.active, EventKind::kDisconnected);
  pair.server.event(pair.passive, EventKind::kDisconnected);
  pair.client.die(pair.active);
  assert_true(pair.wait());
  pair.client.event(pair.active, EventKind::kTimewaitExit);
  pair.finish();
}

void restore__after_destroying_some__keeps_the_others(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  uint32_t ids[5];
  for (uint32_t i = 0; i < 5; i++) ids[i] = host.create(pair.active, RDMA_PS_TCP, i + 1);
  assert_int_equal(host.destroy(pair.active, ids[0]), 0);
  assert_int_equal(host.destroy(pair.active, ids[3]), 0);
  host.die(pair.active);
  assert_int_equal(host.service->ids(), 3);
  rdma_ucm_query_route_resp route;
  for (const uint32_t i : {1, 2, 4}) assert_int_equal(host.query(pair.active, ids[i], route), 0);
  assert_int_equal(host.query(pair.active, ids[0], route), ENOENT);
  // New ids differ from all old ones.
  for (uint32_t i = 0; i < 100; i++) {
    const uint32_t id = host.create(pair.active, RDMA_PS_TCP, 1);
    for (const uint32_t old : ids) assert_int_not_equal(id, old);
  }
}

void repeat__command_that_was_carried_out__succeeds_without_effect(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.client.token = 1;
  pair.connecting = pair.client.create(pair.active, RDMA_PS_TCP, 11);
  pair.client.die(pair.active);
  assert_int_equal(pair.client.create(pair.active, RDMA_PS_TCP, 11), pair.connecting);
  assert_int_equal(pair.client.service->ids(), 1);
  pair.client.token = 2;
  assert_int_equal(pair.client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  pair.client.die(pair.active);
  assert_int_equal(pair.client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  pair.client.token = 3;
  pair.client.event(pair.active, EventKind::kAddrResolved);
  pair.client.token = 30;
  pair.client.assert_no_event(pair.active);
  assert_int_equal(pair.client.resolve_route(pair.active, pair.connecting), 0);
  pair.client.token = 4;
  pair.client.event(pair.active, EventKind::kRouteResolved);
  pair.client.token = 5;
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.client.die(pair.active);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.client.token = 6;
  pair.client.event(pair.active, EventKind::kUnreachable);
  // Another command is not taken for a repetition.
  pair.client.token = 7;
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), EINVAL);
  pair.server.token = 8;
  const uint32_t id = pair.server.create(pair.passive, RDMA_PS_TCP, 5);
  pair.server.die(pair.passive);
  pair.server.now += 60 * kSecond;
  assert_int_not_equal(pair.server.create(pair.passive, RDMA_PS_TCP, 6), id);
}

void repeat__id_that_has_moved__is_there(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  Host& host = pair.server;
  Channel other;
  rdma_ucm_migrate_id migrate = {};
  rdma_ucm_migrate_resp response;
  migrate.id = pair.listener;
  host.token = 5;
  assert_int_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response, sizeof response, &pair.passive), 0);
  host.die(other);
  assert_int_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response, sizeof response, &pair.passive), 0);
  // Another command is not taken for a repetition.
  host.token = 6;
  assert_int_not_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response, sizeof response, &pair.passive),
                       0);
  host.token = 0;
  host.service->close(host.now, other);
  pair.finish();
}

void repeat__event_that_was_handed_over__comes_again(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.client.token = 9;
  pair.client.event(pair.active, EventKind::kDisconnected);
  for (int i = 0; i < 2; i++) {
    pair.client.die(pair.active);
    assert_int_equal(pair.client.event(pair.active, EventKind::kDisconnected).uid, 11);
  }
  pair.client.token = 10;
  pair.client.assert_no_event(pair.active);
  uint32_t reported = 0;
  assert_int_equal(pair.client.destroy(pair.active, pair.connecting, &reported), 0);
  assert_int_equal(reported, 4);
}

void repeat__request_that_was_handed_over__is_gone(void** state) {
  Pair& pair = pair_of(state);
  pair.server.token = 9;
  pair.request();
  pair.server.die(pair.passive);
  assert_int_equal(pair.server.service->ids(), 2);
  pair.server.assert_no_event(pair.passive);
  assert_int_equal(pair.server.service->ids(), 1);
  pair.server.token = 0;
  uint32_t reported = 7;
  assert_int_equal(pair.server.destroy(pair.passive, pair.listener, &reported), 0);
  assert_int_equal(reported, 0);
  pair.carry();
  pair.client.event(pair.active, EventKind::kRejected);
}

// Delivers the host's datagrams to itself.
void carry_to_itself(Host& host) {
  while (!host.out.empty()) {
    const Datagram datagram = host.out.front();
    host.out.pop_front();
    const auto& device = *host.table.find(datagram.path.device);
    host.service->receive(
        host.now,
        {.device = device.index, .ca_guid = device.guid, .local = datagram.path.remote, .remote = datagram.path.local},
        datagram.mad);
  }
}

// Connects two programs of one dappled.
void connect_to_itself(Pair& pair) {
  Host& host = pair.client;
  pair.listener = host.create(pair.passive, RDMA_PS_TCP, 77);
  assert_int_equal(host.bind(pair.passive, pair.listener, any_ipv4(7174)), 0);
  assert_int_equal(host.listen(pair.passive, pair.listener), 0);
  pair.connecting = host.create(pair.active, RDMA_PS_TCP, 11);
  assert_int_equal(host.resolve(pair.active, pair.connecting, ipv4(1, 7174)), 0);
  host.event(pair.active, EventKind::kAddrResolved);
  assert_int_equal(host.resolve_route(pair.active, pair.connecting), 0);
  host.event(pair.active, EventKind::kRouteResolved);
  assert_int_equal(host.connect(pair.active, pair.connecting, parameters(1)), 0);
  carry_to_itself(host);
  pair.accepted = host.event(pair.passive, EventKind::kConnectRequest).id;
  assert_int_equal(host.accept(pair.passive, pair.accepted, 22, parameters(2)), 0);
  carry_to_itself(host);
  host.event(pair.active, EventKind::kConnectResponse);
  assert_int_equal(host.accept(pair.active, pair.connecting, 11, {}), 0);
  carry_to_itself(host);
  host.event(pair.passive, EventKind::kEstablished);
}

void restore__program_died_with_its_dappled__peer_hears_of_it(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  connect_to_itself(pair);
  // Messages of the dead dappled are lost.
  host.service->close(host.now, pair.passive);
  host.die(pair.active);
  host.assert_no_event(pair.active);
  assert_true(pair.wait());
  carry_to_itself(host);
  host.event(pair.active, EventKind::kDisconnected);
}

void restore__both_ends_here__stay_connected(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  connect_to_itself(pair);
  const auto journal = host.journals[&pair.passive];
  host.service->close(host.now, pair.passive);
  host.die(pair.active);
  host.restore(pair.passive, journal);
  assert_true(pair.wait());
  assert_true(host.out.empty());
  assert_false(pair.wait());
  assert_int_equal(host.disconnect(pair.active, pair.connecting), 0);
  carry_to_itself(host);
  host.event(pair.passive, EventKind::kDisconnected);
  host.service->close(host.now, pair.passive);
}

void restore__garbage__is_ignored_or_harmless(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  std::vector<std::byte> good;
  for (const auto& entry : pair.client.journals[&pair.active]) {
    if (!entry.empty()) good = entry;
  }
  assert_int_equal(good.size(), kJournalEntrySize);
  uint64_t random = 1;
  for (int round = 0; round < 20000; round++) {
    std::vector<std::byte> bad = good;
    for (int i = 0; i < 1 + round % 8; i++) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      bad[(random >> 33) % sizeof(JournalEntry)] = static_cast<std::byte>(random >> 56);
    }
    Channel channel;
    Restoration outcome;
    pair.server.service->restore(pair.server.now, channel, bad, outcome);
    assert_int_equal(outcome.error, 0);
    // Every restored id can be queried and destroyed, whatever its state.
    for (CmId* id = channel.ids.first(); id != nullptr; id = id->newer) {
      rdma_ucm_query_route_resp route;
      ib_uverbs_qp_attr attributes;
      pair.server.query(channel, id->number, route);
      pair.server.attributes(channel, id->number, IBV_QPS_RTR, attributes);
      pair.server.disconnect(channel, id->number);
      pair.server.accept(channel, id->number, 1, parameters(1));
    }
    pair.server.service->close(pair.server.now, channel);
    pair.server.out.clear();
    pair.server.journals.erase(&channel);
  }
  // The other programs have noticed nothing.
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
}

// A journal that its program has damaged may hold any bytes. Each entry has one member that contradicts the others.
void restore__entry_that_contradicts_itself__is_ignored(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const auto entry_of = [](const Host::Journal& journal, State wanted) {
    JournalEntry entry;
    for (const auto& bytes : journal) {
      if (bytes.empty()) continue;
      memcpy(static_cast<void*>(&entry), bytes.data(), sizeof entry);
      if (entry.id.state == wanted) return entry;
    }
    fail();
    return entry;
  };
  const JournalEntry listener = entry_of(pair.server.journals[&pair.passive], State::kListen);
  const JournalEntry connection = entry_of(pair.server.journals[&pair.passive], State::kConnect);
  const auto ids_of = [&pair](const JournalEntry& entry, auto change) {
    JournalEntry changed = entry;
    change(changed.id);
    Channel channel;
    Restoration outcome;
    pair.client.service->restore(pair.client.now, channel, std::as_bytes(std::span(&changed, 1)), outcome);
    assert_int_equal(outcome.error, 0);
    const uint32_t ids = channel.ids.size();
    pair.client.service->close(pair.client.now, channel);
    pair.client.out.clear();
    pair.client.journals.erase(&channel);
    return ids;
  };
  assert_int_equal(ids_of(listener, [](IdState&) {}), 1);
  assert_int_equal(ids_of(connection, [](IdState&) {}), 1);

  assert_int_equal(ids_of(listener, [](IdState& id) { id.has_port = 0; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.source.port = 0; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.reuse_address = 1; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.backlog = IdState::kMaxBacklog + 1; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.exchange = Exchange::kEstablished; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.source.family = 0; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.port_space = 1; }), 0);
  assert_int_equal(ids_of(listener, [](IdState& id) { id.state = State::kIdle; }), 0);

  assert_int_equal(ids_of(connection, [](IdState& id) { id.exchange = Exchange::kNone; }), 0);
  assert_int_equal(ids_of(connection, [](IdState& id) { id.device = 0; }), 0);
  assert_int_equal(ids_of(connection, [](IdState& id) { id.gid_index = dapple::soft::kMaxGids; }), 0);
  assert_int_equal(ids_of(connection, [](IdState& id) { id.state = State::kDisconnect; }), 0);
  assert_int_equal(ids_of(connection, [](IdState& id) { id.state = State::kRouteResolved; }), 0);
  assert_int_equal(ids_of(connection, [](IdState& id) { id.unread_count = IdState::kMaxUnread + 1; }), 0);
  pair.finish();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      RDMA_CM_TEST(restore__connection__stays),
      RDMA_CM_TEST(restore__one_side__the_other_disconnects_it),
      RDMA_CM_TEST(restore__listener__listens_again),
      RDMA_CM_TEST(restore__number_taken__both_ids_work),
      RDMA_CM_TEST(restore__port_of_a_listener_taken__its_program_is_told),
      RDMA_CM_TEST(restore__port_of_a_bound_id_taken__listening_fails_until_it_is_free),
      RDMA_CM_TEST(restore__too_many_listeners__its_program_is_told),
      RDMA_CM_TEST(restore__too_many_ids__reports_an_error),
      RDMA_CM_TEST(restore__device_is_gone__its_program_is_told),
      RDMA_CM_TEST(restore__comm_id_taken__is_disconnected),
      RDMA_CM_TEST(restore__comm_id_in_time_wait_taken__time_wait_is_over),
      RDMA_CM_TEST(restore__unread_events__come_again),
      RDMA_CM_TEST(restore__request_sent__is_unreachable),
      RDMA_CM_TEST(restore__response_unanswered__is_an_error),
      RDMA_CM_TEST(restore__response_unread__is_one_error),
      RDMA_CM_TEST(restore__accepted_without_rtu__is_an_error),
      RDMA_CM_TEST(restore__unread_request__goes_with_its_dappled),
      RDMA_CM_TEST(restore__disconnected_before__its_program_hears_of_it),
      RDMA_CM_TEST(restore__requested_before__its_listener_answers),
      RDMA_CM_TEST(restore__nothing_came__peers_are_refused),
      RDMA_CM_TEST(restore__listener_with_unread_requests__has_its_whole_backlog),
      RDMA_CM_TEST(restore__disconnecting__goes_on),
      RDMA_CM_TEST(restore__after_destroying_some__keeps_the_others),
      RDMA_CM_TEST(repeat__command_that_was_carried_out__succeeds_without_effect),
      RDMA_CM_TEST(repeat__id_that_has_moved__is_there),
      RDMA_CM_TEST(repeat__event_that_was_handed_over__comes_again),
      RDMA_CM_TEST(repeat__request_that_was_handed_over__is_gone),
      RDMA_CM_TEST(restore__program_died_with_its_dappled__peer_hears_of_it),
      RDMA_CM_TEST(restore__both_ends_here__stay_connected),
      RDMA_CM_TEST(restore__garbage__is_ignored_or_harmless),
      RDMA_CM_TEST(restore__entry_that_contradicts_itself__is_ignored),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
