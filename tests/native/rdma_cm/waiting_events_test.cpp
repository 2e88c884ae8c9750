// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Events that wait on a channel while its ids are destroyed or migrate, the program forks, or dappled dies. Runs under
// dapple-run, in a network namespace of its own.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/counter.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::tests;

namespace {

constexpr int kSoon = 30000;  // milliseconds, for events that must come

bool readable(const rdma_event_channel* channel, int milliseconds = 0) {
  pollfd waiting = {channel->fd, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) == 1 && (waiting.revents & POLLIN) != 0;
}

rdma_event_channel* open_channel() {
  rdma_event_channel* channel = rdma_create_event_channel();
  assert_non_null(channel);
  assert_int_equal(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  return channel;
}

// An id whose first event waits.
rdma_cm_id* resolve(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(7000);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
  assert_int_equal(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address), 2000), 0);
  assert_true(readable(channel, kSoon));
  return id;
}

// Takes the next event, which must be this one.
void expect(rdma_event_channel* channel, const rdma_cm_id* id, rdma_cm_event_type type) {
  rdma_cm_event* event = nullptr;
  assert_int_equal(rdma_get_cm_event(channel, &event), 0);
  assert_ptr_equal(event->id, id);
  assert_int_equal(event->event, type);
  assert_int_equal(rdma_ack_cm_event(event), 0);
}

void expect_none(rdma_event_channel* channel) {
  rdma_cm_event* event = nullptr;
  assert_int_equal(rdma_get_cm_event(channel, &event), -1);
  assert_int_equal(errno, EAGAIN);
}

// The process id of dappled; 0 if none runs at this moment.
uint32_t dappled(Watcher& watcher) {
  dapple::soft::StatusReply status;
  return watcher.status(status) ? status.process : 0;
}

void kill_dappled() {
  Watcher watcher;
  const uint32_t before = dappled(watcher);
  assert_int_not_equal(before, 0);
  uint32_t after = before;
  kill(static_cast<pid_t>(before), SIGKILL);
  for (int i = 0; i < 3000 && (after == 0 || after == before); i++) {
    usleep(10'000);
    after = dappled(watcher);
  }
  assert_true(after != 0 && after != before);
}

uint64_t counted(const char* name) {
  Watcher watcher;
  dapple::soft::StatusReply status;
  assert_true(watcher.status(status));
  return counter(status, name);
}

// A connection within the host, without queue pairs: its datagrams do not leave dappled.
void connect__within_the_host__sends_no_packet(void**) {
  rdma_event_channel* channel = open_channel();
  rdma_cm_id* listener = nullptr;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(7000);
  assert_int_equal(rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP), 0);
  assert_int_equal(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&address)), 0);
  assert_int_equal(rdma_listen(listener, 1), 0);
  const uint64_t sent = counted("sent_packets");
  const uint64_t kept = counted("same_host_sent_packets");
  rdma_cm_id* id = resolve(channel);
  expect(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
  assert_int_equal(rdma_resolve_route(id, 2000), 0);
  assert_true(readable(channel, kSoon));
  expect(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_conn_param parameters = {};
  parameters.qp_num = 77;
  assert_int_equal(rdma_connect(id, &parameters), 0);
  assert_true(readable(channel, kSoon));
  rdma_cm_event* event = nullptr;
  assert_int_equal(rdma_get_cm_event(channel, &event), 0);
  assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* request = event->id;
  assert_int_equal(rdma_ack_cm_event(event), 0);
  assert_int_equal(rdma_reject(request, nullptr, 0), 0);
  assert_true(readable(channel, kSoon));
  expect(channel, id, RDMA_CM_EVENT_REJECTED);
  assert_int_equal(counted("sent_packets"), sent);
  assert_int_equal(counted("same_host_sent_packets"), kept + 2);
  for (rdma_cm_id* each : {request, id, listener}) assert_int_equal(rdma_destroy_id(each), 0);
  rdma_destroy_event_channel(channel);
}

void destroy__takes_only_its_own_events(void**) {
  rdma_event_channel* channel = open_channel();
  rdma_cm_id* ids[24];
  // More than come in messages of their own.
  for (auto& id : ids) id = resolve(channel);
  for (const int i : {0, 5, 23}) assert_int_equal(rdma_destroy_id(ids[i]), 0);
  for (int i = 0; i < 24; i++) {
    if (i == 0 || i == 5 || i == 23) continue;
    assert_true(readable(channel));
    expect(channel, ids[i], RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  assert_false(readable(channel));
  expect_none(channel);
  // Later events still come.
  assert_int_equal(rdma_resolve_route(ids[1], 2000), 0);
  assert_true(readable(channel, kSoon));
  expect(channel, ids[1], RDMA_CM_EVENT_ROUTE_RESOLVED);
  for (int i = 0; i < 24; i++) {
    if (i != 0 && i != 5 && i != 23) assert_int_equal(rdma_destroy_id(ids[i]), 0);
  }
  rdma_destroy_event_channel(channel);
}

void migrate__events_come_along(void**) {
  rdma_event_channel* from = open_channel();
  rdma_event_channel* to = open_channel();
  rdma_cm_id* stays = resolve(from);
  rdma_cm_id* moves = resolve(from);
  assert_int_equal(rdma_migrate_id(moves, to), 0);
  expect(from, stays, RDMA_CM_EVENT_ADDR_RESOLVED);
  assert_false(readable(from));
  assert_true(readable(to, kSoon));
  expect(to, moves, RDMA_CM_EVENT_ADDR_RESOLVED);
  assert_false(readable(to));
  assert_int_equal(rdma_destroy_id(stays), 0);
  assert_int_equal(rdma_destroy_id(moves), 0);
  rdma_destroy_event_channel(from);
  rdma_destroy_event_channel(to);
}

void fork__each_event_comes_once(void**) {
  rdma_event_channel* channel = open_channel();
  rdma_cm_id* ids[3];
  for (auto& id : ids) id = resolve(channel);
  expect(channel, ids[0], RDMA_CM_EVENT_ADDR_RESOLVED);
  const pid_t child = fork();
  if (child == 0) {
    rdma_cm_event* event = nullptr;
    _exit(rdma_get_cm_event(channel, &event) == 0 && event->id == ids[1] ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  expect(channel, ids[2], RDMA_CM_EVENT_ADDR_RESOLVED);
  expect_none(channel);
  // As with the kernel, destroying ids[1] would wait for ever: the child has its event.
  assert_int_equal(rdma_destroy_id(ids[0]), 0);
  assert_int_equal(rdma_destroy_id(ids[2]), 0);
  rdma_destroy_event_channel(channel);
}

void death__an_event_that_waits_comes_once(void**) {
  rdma_event_channel* channel = open_channel();
  rdma_cm_id* id = resolve(channel);
  kill_dappled();
  uint8_t service = 0;
  assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &service, sizeof service), 0);
  expect(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
  expect_none(channel);
  assert_false(readable(channel));
  assert_int_equal(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
}

// dappled has not heard that the event was read.
void death__an_event_that_was_read_does_not_come_again(void**) {
  rdma_event_channel* channel = open_channel();
  rdma_cm_id* id = resolve(channel);
  expect(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
  for (int i = 0; i < 2; i++) {
    kill_dappled();
    expect_none(channel);
  }
  assert_int_equal(rdma_resolve_route(id, 2000), 0);
  assert_true(readable(channel, kSoon));
  expect(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  expect_none(channel);
  assert_int_equal(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
}

}  // namespace

int main() {
  need_new_namespace();
  alarm(110);
  const CMUnitTest tests[] = {
      cmocka_unit_test(connect__within_the_host__sends_no_packet),
      cmocka_unit_test(destroy__takes_only_its_own_events),
      cmocka_unit_test(migrate__events_come_along),
      cmocka_unit_test(fork__each_event_comes_once),
      cmocka_unit_test(death__an_event_that_waits_comes_once),
      cmocka_unit_test(death__an_event_that_was_read_does_not_come_again),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
