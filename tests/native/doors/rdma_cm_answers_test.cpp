// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The door of rdma_cm beside a fake dappled: answers that come along with an event.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/native/doors/rdma_cm_rig.hpp"

using namespace dapple::tests;

namespace {

// Queries the route, and returns the number of commands that dappled got for it: 0 or 1. Only an answer that came along
// consists of kAheadByte.
int questions(int fd, uint32_t id) {
  const int before = state->commands;
  rdma_ucm_query_route_resp route = {};
  rdma_ucm_query query = {};
  query.id = id;
  assert_true(ask(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, query, route) > 0);
  const int asked = state->commands - before;
  assert_int_equal(reinterpret_cast<const uint8_t*>(&route)[sizeof route - 1] == kAheadByte, asked == 0);
  return asked;
}

// An event whose id's route comes along.
uint32_t read_event(int fd) {
  post(last_channel());
  state->ahead = sizeof(rdma_ucm_query_route_resp);
  rdma_ucm_event_resp event;
  assert_true(get_event(fd, event) > 0);
  return event.id;
}

void query__after_an_event__asks_nothing(void**) {
  const int fd = open_channel();
  const uint32_t id = read_event(fd);
  for (int i = 0; i < 3; i++) assert_int_equal(questions(fd, id), 0);
  assert_int_equal(questions(fd, id + 1), 1);
  close(fd);
}

void query__of_another_channel__asks(void**) {
  const int fd = open_channel();
  const uint32_t id = read_event(fd);
  const int other = open_channel();
  assert_int_equal(questions(other, id), 1);
  close(other);
  close(fd);
}

void query__with_less_room__gets_the_first_part(void**) {
  const int fd = open_channel();
  const uint32_t id = read_event(fd);
  uint8_t room[sizeof(rdma_ucm_query_route_resp)] = {};
  const size_t least = offsetof(rdma_ucm_query_route_resp, ibdev_index);
  Command<rdma_ucm_query> command = {{RDMA_USER_CM_CMD_QUERY_ROUTE, sizeof command.body, least}, {}};
  command.body.response = reinterpret_cast<uintptr_t>(room);
  command.body.id = id;
  const int before = state->commands;
  assert_true(write(fd, &command, sizeof command) > 0);
  assert_int_equal(state->commands, before);
  assert_int_equal(room[least - 1], kAheadByte);
  assert_int_equal(room[least], 0);
  close(fd);
}

void query__after_a_command__asks(void**) {
  const int fd = open_channel();
  uint32_t id = read_event(fd);
  rdma_ucm_destroy_id_resp response;
  rdma_ucm_destroy_id destroy = {};
  destroy.id = id + 1;
  assert_true(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, destroy, response) > 0);
  assert_int_equal(questions(fd, id), 0);
  destroy.id = id;
  assert_true(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, destroy, response) > 0);
  assert_int_equal(questions(fd, id), 1);
  // A command that fails may have changed something, too.
  id = read_event(fd);
  assert_int_equal(questions(fd, id), 0);
  state->fail = EINVAL;
  assert_int_equal(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, destroy, response), -1);
  assert_int_equal(questions(fd, id), 1);
  close(fd);
}

void query__after_another_event__asks(void**) {
  const int fd = open_channel();
  const uint32_t id = read_event(fd);
  post(last_channel());
  rdma_ucm_event_resp event;
  assert_true(get_event(fd, event) > 0);
  assert_int_equal(event.id, id);
  assert_int_equal(questions(fd, id), 1);
  close(fd);
}

void query__of_the_next_dappled__asks(void**) {
  const int fd = open_channel();
  const uint32_t id = read_event(fd);
  const int before = state->restores;
  kill(state->process, SIGKILL);
  assert_true(soon([before] { return state->restores > before; }));
  assert_int_equal(questions(fd, id), 1);
  close(fd);
}

void query__in_a_child__asks(void**) {
  const int fd = open_channel();
  const uint32_t id = read_event(fd);
  const pid_t child = fork();
  if (child == 0) _exit(questions(fd, id));
  assert_int_equal(exit_code(child), 1);
  assert_int_equal(questions(fd, id), 0);
  close(fd);
}

}  // namespace

int main() {
  if (!prepare_fake_dappled()) return 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(query__after_an_event__asks_nothing),
      cmocka_unit_test(query__of_another_channel__asks),
      cmocka_unit_test(query__with_less_room__gets_the_first_part),
      cmocka_unit_test(query__after_a_command__asks),
      cmocka_unit_test(query__after_another_event__asks),
      cmocka_unit_test(query__of_the_next_dappled__asks),
      cmocka_unit_test(query__in_a_child__asks),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
