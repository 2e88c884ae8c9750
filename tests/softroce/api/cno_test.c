/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* CNOs whose EVDs get completions from the device. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"
#include "tests/task_state.h"

static DAT_CNO_HANDLE make_cno(struct fixture* f) {
  DAT_CNO_HANDLE cno;
  assert_ok(dat_cno_create(f->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
  return cno;
}

static void expect_cno(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd) {
  DAT_EVD_HANDLE found = NULL;
  assert_ok(dat_cno_wait(cno, WAIT_US, &found));
  assert_ptr_equal(found, evd);
}

static void expect_no_cno(DAT_CNO_HANDLE cno) {
  DAT_EVD_HANDLE found = cno;
  assert_error(dat_cno_wait(cno, SOON_US, &found), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  assert_null(found);
}

static void take_dto(DAT_EVD_HANDLE evd, uint64_t number) {
  DAT_EVENT event;
  assert_ok(dat_evd_dequeue(evd, &event));
  assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
  assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, number);
  assert_int_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

static void send_one(struct fixture* f, uint64_t number) {
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
  assert_posted(dat_ep_post_send(f->active.ep, 1, &from, cookie(number), DAT_COMPLETION_SUPPRESS_FLAG));
}

static void cno_wait__completions_of_two_evds(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno = make_cno(f);
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  DAT_EVD_HANDLE found[2];
  DAT_EVENT event;
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  assert_ok(dat_evd_modify_cno(f->active.request, cno));
  expect_no_cno(cno);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
  for (int i = 0; i < 2; ++i) assert_ok(dat_cno_wait(cno, WAIT_US, &found[i]));
  assert_true((found[0] == f->passive.recv && found[1] == f->active.request) ||
              (found[1] == f->passive.recv && found[0] == f->active.request));
  take_dto(f->passive.recv, 1);
  take_dto(f->active.request, 2);
  assert_error(dat_evd_dequeue(f->passive.recv, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  expect_no_cno(cno);
}

static void cno_wait__no_completion_of_many_is_lost(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno = make_cno(f);
  DAT_EVENT event;
  uint64_t next = 0;
  uint64_t sent = 0;
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  while (next < 3000) {
    DAT_EVD_HANDLE found;
    for (; sent < 3000 && sent < next + 8; ++sent) send_one(f, sent);
    assert_ok(dat_cno_wait(cno, WAIT_US, &found));
    assert_ptr_equal(found, f->passive.recv);
    while (dat_evd_dequeue(f->passive.recv, &event) == DAT_SUCCESS) {
      assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, next);
      ++next;
    }
  }
}

static void evd_wait__beside_a_cno_and_the_cno_after_it(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno = make_cno(f);
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  for (uint64_t i = 0; i < 50; ++i) {
    send_one(f, 2 * i);
    expect_dto(f->passive.recv, 2 * i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    send_one(f, 2 * i + 1);
    DAT_EVENT event;
    DAT_EVD_HANDLE found;
    /* The first notification may still belong to the event that was waited for. */
    do {
      assert_ok(dat_cno_wait(cno, WAIT_US, &found));
    } while (dat_evd_dequeue(f->passive.recv, &event) != DAT_SUCCESS);
    assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 2 * i + 1);
  }
}

static void evd_disable__and_enable_with_completions(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno = make_cno(f);
  DAT_EVD_PARAM param;
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  assert_ok(dat_evd_disable(f->passive.recv));
  assert_ok(dat_evd_query(f->passive.recv, DAT_EVD_FIELD_ALL, &param));
  assert_int_equal(param.evd_state, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
  assert_ptr_equal(param.cno_handle, cno);
  send_one(f, 1);
  expect_no_cno(cno);
  assert_ok(dat_evd_enable(f->passive.recv));
  expect_cno(cno, f->passive.recv);
  take_dto(f->passive.recv, 1);
  assert_ok(dat_evd_query(f->passive.recv, DAT_EVD_FIELD_ALL, &param));
  assert_int_equal(param.evd_state, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
}

static void evd_modify_cno__moves_the_completions(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE first = make_cno(f);
  DAT_CNO_HANDLE second = make_cno(f);
  DAT_EVD_PARAM param;
  assert_ok(dat_evd_modify_cno(f->passive.recv, first));
  send_one(f, 1);
  expect_cno(first, f->passive.recv);
  take_dto(f->passive.recv, 1);
  assert_ok(dat_evd_modify_cno(f->passive.recv, second));
  assert_ok(dat_evd_query(f->passive.recv, DAT_EVD_FIELD_ALL, &param));
  assert_ptr_equal(param.cno_handle, second);
  send_one(f, 2);
  expect_cno(second, f->passive.recv);
  expect_no_cno(first);
  take_dto(f->passive.recv, 2);
  assert_ok(dat_cno_free(first));
  assert_error(dat_cno_free(second), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
  assert_ok(dat_evd_modify_cno(f->passive.recv, DAT_HANDLE_NULL));
  assert_ok(dat_cno_free(second));
  assert_error_type(dat_cno_free(second), DAT_INVALID_HANDLE);
  assert_error(dat_evd_modify_cno(f->passive.recv, second), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
}

#if !FOR_DAT_12
static void cno_fd__readable_for_completions(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno;
  DAT_CNO_PARAM param;
  DAT_EVD_HANDLE found;
  DAT_FD fd = -1;
  assert_ok(dat_cno_fd_create(f->ia, &fd, &cno));
  assert_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
  assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_FD);
  assert_int_equal(param.proxy.fd, fd);
  assert_ptr_equal(param.ia_handle, f->ia);
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  struct pollfd polled = {fd, POLLIN, 0};
  assert_int_equal(poll(&polled, 1, 100), 0);
  assert_error(dat_cno_trigger(cno, &found), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  for (uint64_t i = 0; i < 20; ++i) {
    send_one(f, i);
    assert_int_equal(poll(&polled, 1, 20000), 1);
    assert_ok(dat_cno_trigger(cno, &found));
    assert_ptr_equal(found, f->passive.recv);
    take_dto(f->passive.recv, i);
    assert_int_equal(poll(&polled, 1, 0), 0);
  }
}

#endif

struct agent_calls {
  atomic_int count;
  atomic_int nulls;
  DAT_EVD_HANDLE evd;
};

static void count_calls(DAT_PVOID data, DAT_EVD_HANDLE evd) {
  struct agent_calls* calls = data;
  if (evd) calls->evd = evd;
  atomic_fetch_add(evd ? &calls->count : &calls->nulls, 1);
}

static void await(atomic_int* count, int wanted) {
  for (int i = 0; i < 20000 && atomic_load(count) < wanted; ++i) usleep(1000);
  assert_int_equal(atomic_load(count), wanted);
}

static void cno_agent__is_called_for_completions(void** state) {
  struct fixture* f = *state;
  static struct agent_calls calls;
  DAT_CNO_HANDLE cno;
  DAT_CNO_PARAM param;
  DAT_OS_WAIT_PROXY_AGENT agent;
  memset(&calls, 0, sizeof calls);
  agent.instance_data = &calls;
  agent.proxy_agent_func = count_calls;
  assert_ok(dat_cno_create(f->ia, agent, &cno));
  assert_ok(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
  ONLY_20(assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_AGENT);)
  assert_ptr_equal(param.ONLY_20(proxy.) agent.instance_data, &calls);
  assert_true(param.ONLY_20(proxy.) agent.proxy_agent_func == count_calls);
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  for (int i = 0; i < 20; ++i) {
    send_one(f, (uint64_t)i);
    await(&calls.count, i + 1);
    assert_ptr_equal(calls.evd, f->passive.recv);
    take_dto(f->passive.recv, (uint64_t)i);
  }
  assert_ok(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
  send_one(f, 99);
  expect_cno(cno, f->passive.recv);
  assert_int_equal(atomic_load(&calls.count), 20);
  assert_ok(dat_cno_modify_agent(cno, agent));
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  f->ia = NULL;
  assert_int_equal(atomic_load(&calls.nulls), 1);
}

struct waiter {
  DAT_CNO_HANDLE cno;
  DAT_TIMEOUT timeout;
  pthread_t thread;
  atomic_int id; /* the kernel's, once the thread is about to wait */
  DAT_RETURN status;
  DAT_EVD_HANDLE found;
};

static void* wait_once(void* argument) {
  struct waiter* w = argument;
  atomic_store(&w->id, (int)syscall(SYS_gettid));
  w->status = dat_cno_wait(w->cno, w->timeout, &w->found);
  return NULL;
}

/* Starts a thread and returns when it sleeps. On a busy machine this may take long. */
static void start_waiter(struct waiter* w, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout) {
  *w = (struct waiter){.cno = cno, .timeout = timeout, .found = cno};
  assert_int_equal(pthread_create(&w->thread, NULL, wait_once, w), 0);
  while (atomic_load(&w->id) == 0 || task_state(atomic_load(&w->id)) != 'S') usleep(1000);
}

static void expect_released(struct waiter* w) {
  assert_int_equal(pthread_join(w->thread, NULL), 0);
  assert_ok(w->status);
  assert_ptr_equal(w->found, DAT_HANDLE_NULL);
}

static void cno_free__while_a_thread_waits(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno = make_cno(f);
  struct waiter waiter;
  start_waiter(&waiter, cno, 1000000);
  assert_error(dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
  assert_int_equal(pthread_join(waiter.thread, NULL), 0);
  assert_error_type(waiter.status, DAT_QUEUE_EMPTY);
  assert_ok(dat_cno_free(cno));
}

/* The thread is released before it has returned. */
static void cno_free__right_after_its_last_evd(void** state) {
  struct fixture* f = *state;
  for (int i = 0; i < 20; ++i) {
    DAT_CNO_HANDLE cno = make_cno(f);
    DAT_EVD_HANDLE evd;
    struct waiter waiter;
    assert_ok(dat_evd_create(f->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    start_waiter(&waiter, cno, DAT_TIMEOUT_INFINITE);
    assert_ok(dat_evd_free(evd));
    assert_ok(dat_cno_free(cno));
    expect_released(&waiter);
  }
}

static void ia_close_abrupt__releases_cno_waiters(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno = make_cno(f);
  struct waiter waiters[3];
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  for (int i = 0; i < 3; ++i) start_waiter(&waiters[i], cno, DAT_TIMEOUT_INFINITE);
  assert_error_type(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  f->ia = NULL;
  for (int i = 0; i < 3; ++i) expect_released(&waiters[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(cno_wait__completions_of_two_evds),
      CONNECTED_TEST(cno_wait__no_completion_of_many_is_lost),
      CONNECTED_TEST(evd_wait__beside_a_cno_and_the_cno_after_it),
      CONNECTED_TEST(evd_disable__and_enable_with_completions),
      CONNECTED_TEST(evd_modify_cno__moves_the_completions),
      ONLY_20(CONNECTED_TEST(cno_fd__readable_for_completions), ) CONNECTED_TEST(cno_agent__is_called_for_completions),
      IA_TEST(cno_free__while_a_thread_waits),
      IA_TEST(cno_free__right_after_its_last_evd),
      CONNECTED_TEST(ia_close_abrupt__releases_cno_waiters),
  };
  return RUN_TESTS(tests);
}
