// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Commands that no library would write, isolation of channels, and limits.
#include <initializer_list>

#include "provider/protocol/cm_commands.hpp"
#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

constexpr uint32_t kLastCommand = dapple::soft::kCmWriteEvent;

int raw(Pair& pair, std::span<const uint8_t> bytes) {
  uint8_t room[16];
  Service::Answer answer{.response = room};
  return pair.client.service->command(pair.client.now, pair.active, nullptr, bytes, answer);
}

void command__broken_header__is_refused(void** state) {
  Pair& pair = pair_of(state);
  uint8_t bytes[64] = {};
  for (size_t size = 0; size < sizeof(rdma_ucm_cmd_hdr); size++) {
    assert_int_equal(raw(pair, {bytes, size}), EINVAL);
  }
  rdma_ucm_cmd_hdr header = {.cmd = RDMA_USER_CM_CMD_LISTEN, .in = 57, .out = 0};
  memcpy(bytes, &header, sizeof header);
  assert_int_equal(raw(pair, bytes), EINVAL);
  header = {.cmd = 1000, .in = 0, .out = 0};
  memcpy(bytes, &header, sizeof header);
  assert_int_equal(raw(pair, bytes), EINVAL);
  for (const uint32_t unknown : {RDMA_USER_CM_CMD_GET_OPTION, RDMA_USER_CM_CMD_BIND, RDMA_USER_CM_CMD_QUERY}) {
    header = {.cmd = unknown, .in = 56, .out = 16};
    memcpy(bytes, &header, sizeof header);
    assert_int_equal(raw(pair, bytes), ENOSYS);
  }
}

void command__cut_short_or_without_room__is_refused(void** state) {
  Pair& pair = pair_of(state);
  const uint32_t id = pair.client.create(pair.active, RDMA_PS_TCP, 1);
  for (uint32_t number = 0; number <= kLastCommand; number++) {
    const uint8_t nothing[8] = {};
    // GET_EVENT reads nothing of its command.
    const bool reads = number != RDMA_USER_CM_CMD_GET_EVENT && number != RDMA_USER_CM_CMD_DISCONNECT &&
                       number != RDMA_USER_CM_CMD_LISTEN && number != RDMA_USER_CM_CMD_NOTIFY &&
                       number != RDMA_USER_CM_CMD_RESOLVE_ROUTE;
    const int error = pair.client.exchange(pair.active, number, {nothing, reads ? 7U : 3U}, {});
    const bool unsupported = number == RDMA_USER_CM_CMD_GET_OPTION ||
                             (number >= RDMA_USER_CM_CMD_QUERY && number <= RDMA_USER_CM_CMD_JOIN_MCAST);
    // Another error would be about the command's contents.
    if (number == RDMA_USER_CM_CMD_GET_EVENT) {
      assert_int_equal(error, ENOSPC);
    } else {
      assert_int_equal(error, unsupported ? ENOSYS : EINVAL);
    }
  }
  rdma_ucm_destroy_id destroy = {};
  destroy.id = id;
  const auto bytes = std::span(reinterpret_cast<const uint8_t*>(&destroy), sizeof destroy);
  assert_int_equal(pair.client.exchange(pair.active, RDMA_USER_CM_CMD_DESTROY_ID, bytes, {}), ENOSPC);
  assert_int_equal(pair.client.service->ids(), 1);
}

void command__random_bytes__harms_nobody(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  Channel hostile;
  uint64_t random = 7;
  for (int round = 0; round < 50000; round++) {
    uint8_t bytes[400];
    for (size_t i = 0; i < sizeof bytes; i++) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      // Many zeros: they have more meanings than other numbers.
      bytes[i] = (random >> 60) < 10 ? 0 : static_cast<uint8_t>(random >> 40);
    }
    const rdma_ucm_cmd_hdr header{static_cast<uint32_t>(random >> 33) % (kLastCommand + 1),
                                  static_cast<uint16_t>(round % 390), static_cast<uint16_t>(random >> 20)};
    memcpy(bytes, &header, sizeof header);
    // Often the number of an existing id.
    if (hostile.ids.first() != nullptr && round % 2 == 0) {
      for (size_t at = 8; at + 4 <= sizeof bytes; at += 4) {
        if ((random >> at % 32 & 3) == 0) memcpy(bytes + at, &hostile.ids.first()->number, 4);
      }
    }
    uint8_t room[400];
    Service::Answer answer{.response = room};
    pair.client.service->command(pair.client.now, hostile, nullptr, bytes, answer);
    assert_true(answer.length <= sizeof room);
    if (round % 1000 == 0) pair.client.service->close(pair.client.now, hostile);
  }
  pair.client.service->close(pair.client.now, hostile);
  pair.client.out.clear();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
}

void ids__of_another_channel__are_refused(void** state) {
  Pair& pair = pair_of(state);
  Channel other;
  const uint32_t id = pair.client.create(pair.active, RDMA_PS_TCP, 1);
  assert_int_equal(pair.client.bind(other, id, any_ipv4(7174)), EINVAL);
  assert_int_equal(pair.client.destroy(other, id), EINVAL);
  assert_int_equal(pair.client.destroy(pair.active, id + 1), ENOENT);
  assert_int_equal(pair.client.destroy(pair.active, id), 0);
  assert_int_equal(pair.client.destroy(pair.active, id), ENOENT);
}

// The listener's channel has an event that nobody has read.
void have_unread_request(Pair& pair) {
  pair.listen();
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
}

void migrate__with_unread_events__moves_them(void** state) {
  Pair& pair = pair_of(state);
  Channel other;
  rdma_ucm_migrate_id migrate = {};
  rdma_ucm_migrate_resp response;
  Host& host = pair.server;
  have_unread_request(pair);
  migrate.id = pair.listener;
  assert_int_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response), EBADF);
  assert_int_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response, sizeof response, &other), EINVAL);
  assert_int_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response, sizeof response, &pair.passive), 0);
  assert_int_equal(response.events_reported, 0);
  assert_int_equal(host.removed, 1);
  host.assert_no_event(pair.passive);
  const uint32_t id = host.event(other, EventKind::kConnectRequest).id;
  assert_int_equal(host.accept(other, id, 22, parameters(2)), 0);
  pair.carry();
  pair.client.event(pair.active, EventKind::kConnectResponse);
  host.service->close(host.now, other);
}

void close__after_migration_of_a_listener__destroys_its_unread_requests(void** state) {
  Pair& pair = pair_of(state);
  Channel other;
  rdma_ucm_migrate_id migrate = {};
  rdma_ucm_migrate_resp response;
  Host& host = pair.server;
  have_unread_request(pair);
  migrate.id = pair.listener;
  assert_int_equal(host.ask(other, RDMA_USER_CM_CMD_MIGRATE_ID, migrate, response, sizeof response, &pair.passive), 0);
  host.service->close(host.now, other);
  assert_int_equal(host.service->ids(), 0);
  assert_int_equal(other.events.size(), 0);
}

void request__whose_event_is_unread__has_no_id_yet(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.server;
  have_unread_request(pair);
  const uint32_t id = pair.passive.ids.last()->number;
  assert_int_not_equal(id, pair.listener);
  assert_int_equal(host.destroy(pair.passive, id), ENOENT);
  assert_int_equal(host.event(pair.passive, EventKind::kConnectRequest).id, id);
  assert_int_equal(host.destroy(pair.passive, id), 0);
}

// Programs read such events out of messages.
void take__events_with_tickets__are_reported(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  pair.active.hands_events = true;
  const uint32_t id = host.create(pair.active, RDMA_PS_TCP, 5);
  assert_int_equal(host.resolve(pair.active, id, ipv4(2, 7174)), 0);
  const Event* event = pair.active.events.first();
  assert_non_null(event);
  assert_int_not_equal(event->ticket, 0);
  const uint32_t ticket = event->ticket;
  // A program that asks does not get it.
  host.assert_no_event(pair.active);
  host.service->take(pair.active, ticket - 1);
  assert_int_equal(pair.active.events.size(), 1);
  host.service->take(pair.active, ticket);
  assert_int_equal(pair.active.events.size(), 0);
  assert_int_equal(host.resolve_route(pair.active, id), 0);
  uint32_t reported = 0;
  assert_int_equal(host.destroy(pair.active, id, &reported), 0);
  assert_int_equal(reported, 1);
  assert_int_equal(host.removed, 0);
  assert_int_equal(host.removed_events, 1);
}

// The messages of a channel that nobody reads stay small.
void take__of_many_events__the_later_ones_have_no_ticket(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  pair.active.hands_events = true;
  uint32_t ids[40];
  for (uint32_t& id : ids) {
    id = host.create(pair.active, RDMA_PS_TCP, 5);
    assert_int_equal(host.resolve(pair.active, id, ipv4(2, 7174)), 0);
  }
  uint32_t tickets = 0;
  for (const Event* event = pair.active.events.first(); event != nullptr; event = event->newer) {
    if (event->ticket != 0) tickets++;
  }
  assert_true(tickets > 0 && tickets < 40);
  for (uint32_t i = tickets; i < 40; i++) {
    assert_int_equal(host.event(pair.active, EventKind::kAddrResolved).id, ids[i]);
  }
  host.service->take(pair.active, pair.active.last_ticket);
  assert_int_equal(pair.active.events.size(), 0);
  for (const uint32_t id : ids) {
    uint32_t reported = 0;
    assert_int_equal(host.destroy(pair.active, id, &reported), 0);
    assert_int_equal(reported, 1);
  }
}

void unread_events__too_many__stop_their_maker(void** state) {
  Pair& pair = pair_of(state);
  const uint32_t id = pair.client.create(pair.active, RDMA_PS_TCP, 1);
  sockaddr_in6 self = any_ipv6(7174);
  self.sin6_addr.s6_addr[15] = 1;
  int error = 0;
  uint32_t made = 0;
  while (error == 0 && made <= Service::kMaxUnread) {
    error = pair.client.resolve(pair.active, id, self);
    made++;
  }
  assert_int_equal(error, ENOMEM);
  assert_int_equal(pair.active.events.size(), Service::kMaxUnread);
}

int write_event(Host& host, Channel& channel, uint32_t id, uint32_t event, uint64_t argument, int status = 0) {
  dapple::soft::CmWriteEventCommand command = {};
  command.id = id;
  command.event = event;
  command.status = static_cast<uint32_t>(status);
  command.argument = argument;
  return host.command(channel, dapple::soft::kCmWriteEvent, command);
}

void write_event__comes_as_it_was_written(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  for (const bool hands : {false, true}) {
    pair.active.hands_events = hands;
    const uint32_t id = host.create(pair.active, RDMA_PS_TCP, 77);
    const uint64_t argument = 0x0123456789abcdef;
    assert_int_equal(write_event(host, pair.active, id, 18, argument, -5), 0);
    assert_int_equal(write_event(host, pair.active, id, 19, 16), 0);
    for (const EventKind kind : {EventKind::kUser, EventKind::kInternal}) {
      const rdma_ucm_event_resp event = host.event(pair.active, kind);
      assert_int_equal(event.uid, 77);
      assert_int_equal(event.id, id);
      uint64_t came = 0;
      memcpy(&came, &event.param, sizeof came);
      assert_int_equal(came, kind == EventKind::kUser ? argument : 16);
      assert_int_equal(static_cast<int>(event.status), kind == EventKind::kUser ? -5 : 0);
    }
    uint32_t reported = 0;
    assert_int_equal(host.destroy(pair.active, id, &reported), 0);
    assert_int_equal(reported, 2);
  }
}

void write_event__of_others__is_refused(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_TCP, 1);
  for (const uint32_t event : {0u, 9u, 16u, 17u, 20u, UINT32_MAX})
    assert_int_equal(write_event(host, pair.active, id, event, 0), EINVAL);
  assert_int_equal(write_event(host, pair.active, id + 1, 18, 0), ENOENT);
  assert_int_equal(write_event(host, pair.passive, id, 18, 0), EINVAL);
  int error = 0;
  while (error == 0 && pair.active.events.size() <= Service::kMaxUnread)
    error = write_event(host, pair.active, id, 18, 0);
  assert_int_equal(error, ENOMEM);
  assert_int_equal(pair.active.events.size(), Service::kMaxUnread);
}

// Its argument is not in the journal.
void write_event__unread_when_dappled_dies__is_lost(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_UDP, 1);
  assert_int_equal(write_event(host, pair.active, id, 18, 5), 0);
  host.die(pair.active);
  host.assert_no_event(pair.active);
  uint32_t reported = 1;
  assert_int_equal(host.destroy(pair.active, id, &reported), 0);
  assert_int_equal(reported, 0);
}

void ib_service__is_refused_as_by_the_kernel_for_roce(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  dapple::soft::CmIbServiceCommand command = {};
  command.id = host.create(pair.active, RDMA_PS_TCP, 1);
  assert_int_equal(host.command(pair.active, dapple::soft::kCmResolveIbService, command), EINVAL);
  assert_int_equal(host.bind(pair.active, command.id, ipv4(1, 0)), 0);
  assert_int_equal(host.command(pair.active, dapple::soft::kCmResolveIbService, command), EOPNOTSUPP);
  command.id++;
  assert_int_equal(host.command(pair.active, dapple::soft::kCmResolveIbService, command), ENOENT);
}

void ids__too_many__are_refused(void** state) {
  Pair& pair = pair_of(state);
  for (uint32_t i = 0; i < IdTable::kMax; i++) pair.client.create(pair.active, RDMA_PS_TCP, 1);
  rdma_ucm_create_id command = {};
  command.ps = RDMA_PS_TCP;
  rdma_ucm_create_id_resp response = {};
  assert_int_equal(pair.client.ask(pair.active, RDMA_USER_CM_CMD_CREATE_ID, command, response), ENOMEM);
  pair.client.service->close(pair.client.now, pair.active);
  assert_int_equal(pair.client.service->ids(), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      RDMA_CM_TEST(command__broken_header__is_refused),
      RDMA_CM_TEST(command__cut_short_or_without_room__is_refused),
      RDMA_CM_TEST(command__random_bytes__harms_nobody),
      RDMA_CM_TEST(ids__of_another_channel__are_refused),
      RDMA_CM_TEST(migrate__with_unread_events__moves_them),
      RDMA_CM_TEST(close__after_migration_of_a_listener__destroys_its_unread_requests),
      RDMA_CM_TEST(request__whose_event_is_unread__has_no_id_yet),
      RDMA_CM_TEST(take__events_with_tickets__are_reported),
      RDMA_CM_TEST(take__of_many_events__the_later_ones_have_no_ticket),
      RDMA_CM_TEST(unread_events__too_many__stop_their_maker),
      RDMA_CM_TEST(write_event__comes_as_it_was_written),
      RDMA_CM_TEST(write_event__of_others__is_refused),
      RDMA_CM_TEST(write_event__unread_when_dappled_dies__is_lost),
      RDMA_CM_TEST(ib_service__is_refused_as_by_the_kernel_for_roce),
      RDMA_CM_TEST(ids__too_many__are_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
