// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The door of rdma_cm beside a fake dappled: events.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/native/doors/rdma_cm_rig.hpp"

using namespace dapple::tests;

namespace {

void get_event__without_waiting(void**) {
  const int fd = open_channel(O_NONBLOCK);
  rdma_ucm_event_resp event;
  assert_int_equal(get_event(fd, event), -1);
  assert_int_equal(errno, EAGAIN);
  assert_false(readable(fd));
  post(last_channel());
  assert_true(soon([fd] { return readable(fd); }));
  assert_int_equal(get_event(fd, event), sizeof(Command<rdma_ucm_get_event>));
  assert_int_equal(event.id, last_channel());
  assert_false(readable(fd));
  // First one event was taken away and another follows it; then one was taken away and none follows.
  for (int i = 0; i < 2; i++) post(last_channel());
  state->forget_event = 1;
  assert_true(get_event(fd, event) > 0);
  assert_int_equal(get_event(fd, event), -1);
  assert_int_equal(errno, EAGAIN);
  close(fd);
}

void get_event__a_destroyed_ids_events_do_not_poll(void**) {
  const int fd = open_channel();
  for (int i = 0; i < 3; i++) post(last_channel());
  assert_true(soon([fd] { return readable(fd); }));
  rdma_ucm_destroy_id_resp response;
  state->removed = 2;
  assert_true(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{}, response) > 0);
  assert_int_equal(response.events_reported, 3);
  assert_true(readable(fd));
  state->removed = 2;  // more than there are
  assert_true(ask(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, rdma_ucm_destroy_id{}, response) > 0);
  assert_false(readable(fd));
  close(fd);
}

void get_event__destroying_an_id_needs_no_memory(void**) {
  const int fd = open_channel();
  for (int i = 0; i < 3; i++) post(last_channel());
  rlimit whole;
  assert_int_equal(getrlimit(RLIMIT_AS, &whole), 0);
  const rlimit none = {0, whole.rlim_max};
  rdma_ucm_destroy_id_resp response;
  state->removed = 2;
  assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
  const ssize_t size = ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{}, response);
  assert_int_equal(setrlimit(RLIMIT_AS, &whole), 0);
  assert_true(size > 0);
  rdma_ucm_event_resp event;
  assert_true(get_event(fd, event) > 0);
  assert_false(readable(fd));
  close(fd);
}

void get_event__without_an_answer__the_event_still_waits(void**) {
  const int fd = open_channel(O_NONBLOCK);
  post(last_channel());
  state->fail = ENOMEM;
  rdma_ucm_event_resp event;
  assert_int_equal(get_event(fd, event), -1);
  assert_int_equal(errno, ENOMEM);
  assert_true(readable(fd));
  assert_true(get_event(fd, event) > 0);
  assert_false(readable(fd));
  close(fd);
}

void get_event__waits_for_one(void**) {
  const int fd = open_channel();
  Waiter waiter(fd);
  assert_true(waiter.waits());
  // Other commands run meanwhile.
  assert_true(works(fd));
  post(last_channel());
  waiter.join();
  assert_true(waiter.result > 0);
  assert_int_equal(waiter.event.id, last_channel());
  close(fd);
}

void get_event__a_signal_ends_or_restarts_it(void**) {
  const int fd = open_channel();
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  Waiter interrupted(fd);
  pthread_kill(interrupted.thread, SIGUSR1);
  interrupted.join();
  assert_int_equal(interrupted.result, -1);
  assert_int_equal(interrupted.error, EINTR);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  Waiter restarted(fd);
  pthread_kill(restarted.thread, SIGUSR1);
  nap(30);
  assert_true(restarted.waits());
  post(last_channel());
  restarted.join();
  assert_true(restarted.result > 0);
  close(fd);
}

void get_event__is_a_cancellation_point(void**) {
  const int fd = open_channel();
  Waiter waiter(fd);
  pthread_cancel(waiter.thread);
  assert_ptr_equal(waiter.join(), PTHREAD_CANCELED);
  assert_true(works(fd));
  post(last_channel());
  rdma_ucm_event_resp event;
  assert_true(get_event(fd, event) > 0);
  close(fd);
}

void get_event__many_readers_get_all_events(void**) {
  const int fd = open_channel();
  const int channel = last_channel();
  struct Shared {
    int fd;
    std::atomic<int> got;
  } shared = {fd, {0}};
  pthread_t threads[4];
  for (pthread_t& thread : threads) {
    pthread_create(
        &thread, nullptr,
        [](void* at) -> void* {
          auto* to = static_cast<Shared*>(at);
          rdma_ucm_event_resp event;
          for (int i = 0; i < 25; i++) {
            if (get_event(to->fd, event) > 0) to->got++;
          }
          return nullptr;
        },
        &shared);
  }
  for (int i = 0; i < 100; i++) post(channel);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  assert_int_equal(shared.got, 100);
  close(fd);
}

}  // namespace

int main() {
  if (!prepare_fake_dappled()) return 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(get_event__without_waiting),
      cmocka_unit_test(get_event__a_destroyed_ids_events_do_not_poll),
      cmocka_unit_test(get_event__destroying_an_id_needs_no_memory),
      cmocka_unit_test(get_event__without_an_answer__the_event_still_waits),
      cmocka_unit_test(get_event__waits_for_one),
      cmocka_unit_test(get_event__a_signal_ends_or_restarts_it),
      cmocka_unit_test(get_event__is_a_cancellation_point),
      cmocka_unit_test(get_event__many_readers_get_all_events),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
