/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Event dispatchers: waiting, thresholds, signals, software events, and overflow. One thread waits at a time.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/softroce/api/api.h"

enum { kQlen = 8 };
#define LONG_US 20000000U

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static DAT_EVD_HANDLE software_evd(const struct fixture* f) {
  DAT_EVD_HANDLE evd;
  assert_ok(dat_evd_create(f->ia, kQlen, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
  return evd;
}

static DAT_RETURN post(DAT_EVD_HANDLE evd, uintptr_t number) {
  DAT_EVENT event;
  memset(&event, 0, sizeof event);
  event.event_number = DAT_SOFTWARE_EVENT;
  event.event_data.software_event_data.pointer = (DAT_PVOID)number;
  return dat_evd_post_se(evd, &event);
}

static void evd_wait__not_before_the_deadline(void** state) {
  static const unsigned int timeouts_us[] = {0, 1, 10, 999, 1000, 1001, 2500, 50000};
  const struct fixture* f = *state;
  const DAT_EVD_HANDLE evds[] = {software_evd(f), f->active.recv};
  for (size_t k = 0; k < 2; ++k) {
    for (size_t i = 0; i < sizeof timeouts_us / sizeof *timeouts_us; ++i) {
      DAT_EVENT event;
      DAT_COUNT more = 77;
      const int64_t start = now_us();
      assert_error(dat_evd_wait(evds[k], timeouts_us[i], 1, &event, &more), DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
      assert_true(now_us() - start >= timeouts_us[i]);
      assert_int_equal(more, 0);
    }
  }
}

/* 300 waits of 100 us each take 0.03 s, not a millisecond or more each. */
static void evd_wait__microseconds_are_kept(void** state) {
  const struct fixture* f = *state;
  int64_t best = INT64_MAX;
  for (int i = 0; i < 300; ++i) {
    DAT_EVENT event;
    DAT_COUNT more;
    const int64_t start = now_us();
    assert_error_type(dat_evd_wait(f->active.recv, 100, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    const int64_t took = now_us() - start;
    if (took < best) best = took;
  }
  assert_true(best < 1000);
}

static void evd_wait__threshold(void** state) {
  const struct fixture* f = *state;
  const DAT_EVD_HANDLE evd = software_evd(f);
  DAT_EVD_PARAM param;
  DAT_EVENT event;
  DAT_COUNT more = 77;
  assert_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
  assert_true(param.evd_qlen >= kQlen);
  assert_error(dat_evd_wait(evd, 0, 0, &event, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(dat_evd_wait(evd, 0, -1, &event, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(dat_evd_wait(evd, 0, param.evd_qlen + 1, &event, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error_type(dat_evd_wait(evd, 0, param.evd_qlen, &event, &more), DAT_TIMEOUT_EXPIRED);
  assert_error(dat_evd_wait(evd, 0, 1, NULL, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(dat_evd_wait(evd, 0, 1, &event, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);

  /* Too few: the call takes none, but counts them. */
  assert_ok(post(evd, 1));
  assert_ok(post(evd, 2));
  assert_error_type(dat_evd_wait(evd, 1000, 3, &event, &more), DAT_TIMEOUT_EXPIRED);
  assert_int_equal(more, 2);
  assert_ok(post(evd, 3));
  assert_ok(dat_evd_wait(evd, 0, 3, &event, &more));
  assert_int_equal(more, 2);
  assert_ptr_equal(event.event_data.software_event_data.pointer, (DAT_PVOID)(uintptr_t)1);
}

/* It counts completions of the hardware as well. */
static void evd_wait__threshold_of_completions(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  DAT_EVENT event;
  DAT_COUNT more = 77;
  for (uint64_t i = 0; i < 3; ++i) {
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(i), &there, DAT_COMPLETION_DEFAULT_FLAG));
  }
  assert_error_type(dat_evd_wait(f->active.request, SOON_US, 4, &event, &more), DAT_TIMEOUT_EXPIRED);
  assert_int_equal(more, 3);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(3), &there, DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_evd_wait(f->active.request, WAIT_US, 4, &event, &more));
  assert_int_equal(more, 3);
  assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
  for (uint64_t i = 1; i < 4; ++i) expect_dto(f->active.request, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
}

struct waiter {
  DAT_EVD_HANDLE evd;
  DAT_COUNT threshold;
  DAT_RETURN status;
  DAT_EVENT event;
  DAT_COUNT more;
  _Atomic bool done;
};

static void* wait_long(void* argument) {
  struct waiter* self = argument;
  self->status = dat_evd_wait(self->evd, LONG_US, self->threshold, &self->event, &self->more);
  self->done = true;
  return NULL;
}

static pthread_t start_waiter(struct waiter* waiter) {
  pthread_t thread;
  DAT_EVENT unused;
  assert_int_equal(pthread_create(&thread, NULL, wait_long, waiter), 0);
  while (DAT_GET_TYPE(dat_evd_dequeue(waiter->evd, &unused)) != DAT_INVALID_STATE) sched_yield();
  return thread;
}

static void evd_wait__second_waiter_and_dequeue_beside_one(void** state) {
  struct fixture* f = *state;
  struct waiter waiter = {software_evd(f), 1, 0, {0}, 0, false};
  DAT_EVENT event;
  DAT_COUNT more;
  pthread_t thread = start_waiter(&waiter);
  assert_error(dat_evd_wait(waiter.evd, 0, 1, &event, &more), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
  assert_error(dat_evd_dequeue(waiter.evd, &event), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
  assert_error(dat_evd_free(waiter.evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
  assert_ok(post(waiter.evd, 5));
  pthread_join(thread, NULL);
  assert_ok(waiter.status);
  assert_ptr_equal(waiter.event.event_data.software_event_data.pointer, (DAT_PVOID)(uintptr_t)5);
  assert_error(dat_evd_dequeue(waiter.evd, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  assert_ok(dat_evd_free(waiter.evd));
}

static void evd_wait__a_completion_wakes_a_sleeper(void** state) {
  struct fixture* f = *state;
  struct waiter waiter = {f->active.request, 2, 0, {0}, 0, false};
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  pthread_t thread = start_waiter(&waiter);
  for (uint64_t i = 0; i < 2; ++i) {
    usleep(50000); /* long enough for it to fall asleep */
    assert_false(waiter.done);
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(i), &there, DAT_COMPLETION_DEFAULT_FLAG));
  }
  pthread_join(thread, NULL);
  assert_ok(waiter.status);
  assert_int_equal(waiter.more, 1);
}

static void on_signal(int number) {
  (void)number;
}

static void evd_wait__a_signal_interrupts(void** state) {
  struct fixture* f = *state;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  for (int restart = 0; restart < 2; ++restart) {
    struct waiter waiter = {f->active.recv, 1, 0, {0}, 0, false};
    pthread_t thread;
    action.sa_flags = restart ? SA_RESTART : 0;
    sigaction(SIGUSR1, &action, NULL);
    thread = start_waiter(&waiter);
    for (int i = 0; i < 1000 && !waiter.done; ++i) {
      pthread_kill(thread, SIGUSR1);
      usleep(10000);
    }
    pthread_join(thread, NULL);
    assert_error(waiter.status, DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
  }
  signal(SIGUSR1, SIG_DFL);
}

/* The application's handlers never run on a thread of ours. */
static volatile sig_atomic_t handled_elsewhere;
static pthread_t main_thread;
static void note_thread(int number) {
  (void)number;
  if (!pthread_equal(pthread_self(), main_thread)) handled_elsewhere = 1;
}

static void signals__run_on_no_thread_of_ours(void** state) {
  sigset_t set, before;
  (void)state;
  main_thread = pthread_self();
  signal(SIGUSR2, note_thread);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  for (int i = 0; i < 20; ++i) {
    kill(getpid(), SIGUSR2);
    usleep(1000);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  usleep(1000);
  assert_int_equal(handled_elsewhere, 0);
  signal(SIGUSR2, SIG_DFL);
}

static void evd_set_unwaitable__wakes_the_waiter(void** state) {
  struct fixture* f = *state;
  const DAT_EVD_HANDLE evds[] = {software_evd(f), f->active.recv};
  for (size_t i = 0; i < 2; ++i) {
    struct waiter waiter = {evds[i], 1, 0, {0}, 0, false};
    DAT_EVD_PARAM param;
    DAT_EVENT event;
    DAT_COUNT more;
    pthread_t thread = start_waiter(&waiter);
    usleep(50000);
    assert_ok(dat_evd_set_unwaitable(evds[i]));
    pthread_join(thread, NULL);
    assert_error(waiter.status, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
    assert_error(dat_evd_wait(evds[i], 0, 1, &event, &more), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
    assert_ok(dat_evd_query(evds[i], DAT_EVD_FIELD_ALL, &param));
    assert_int_equal(param.evd_state & DAT_EVD_STATE_UNWAITABLE, DAT_EVD_STATE_UNWAITABLE);
    assert_error_type(dat_evd_dequeue(evds[i], &event), DAT_QUEUE_EMPTY);
    assert_ok(dat_evd_clear_unwaitable(evds[i]));
    assert_error_type(dat_evd_wait(evds[i], 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
  }
}

static void evd_post_se__bounded(void** state) {
  struct fixture* f = *state;
  const DAT_EVD_HANDLE evd = software_evd(f);
  DAT_EVD_PARAM param;
  DAT_EVENT event;
  assert_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
  for (DAT_COUNT i = 0; i < param.evd_qlen; ++i) assert_ok(post(evd, (uintptr_t)i));
  for (int i = 0; i < 3; ++i) assert_error(post(evd, 99), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
  for (DAT_COUNT i = 0; i < param.evd_qlen; ++i) {
    assert_ok(dat_evd_dequeue(evd, &event));
    assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
    assert_ptr_equal(event.evd_handle, evd);
    assert_ptr_equal(event.event_data.software_event_data.pointer, (DAT_PVOID)(uintptr_t)i);
  }
  assert_error(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
  assert_ok(post(evd, 1));
}

/* More completions than the EVD holds, and no thread takes them. */
static void evd_overflow__of_completions(void** state) {
  struct fixture* f = *state;
  struct end end;
  DAT_EVD_PARAM param;
  DAT_LMR_TRIPLET source = local(f, 0, 8);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 8);
  DAT_EP_ATTR attr;
  DAT_EP_PARAM ep;
  DAT_EVENT event;
  assert_ok(dat_ep_query(f->active.ep, DAT_EP_FIELD_ALL, &ep));
  attr = ep.ep_attr;
  attr.max_request_dtos = 64;
  end = f->active;
  assert_ok(dat_evd_create(f->ia, 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end.request));
  assert_ok(dat_evd_query(end.request, DAT_EVD_FIELD_ALL, &param));
  assert_true(param.evd_qlen < attr.max_request_dtos / 2);
  assert_ok(dat_ep_create(f->ia, f->pz, end.recv, end.request, end.connect, &attr, &end.ep));
  begin_connect(f, &end, NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), f->passive.ep, 0, NULL));
  expect_event(end.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  for (DAT_COUNT i = 0; i < attr.max_request_dtos; ++i) {
    assert_ok(dat_ep_post_rdma_write(end.ep, 1, &source, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  }
  event = expect_event(f->async, DAT_ASYNC_ERROR_EVD_OVERFLOW);
  assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, end.request);
  assert_ok(dat_ep_free(end.ep));
  assert_ok(dat_evd_free(end.request));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ENDS_TEST(evd_wait__not_before_the_deadline),
      ENDS_TEST(evd_wait__microseconds_are_kept),
      ENDS_TEST(evd_wait__threshold),
      CONNECTED_TEST(evd_wait__threshold_of_completions),
      ENDS_TEST(evd_wait__second_waiter_and_dequeue_beside_one),
      CONNECTED_TEST(evd_wait__a_completion_wakes_a_sleeper),
      ENDS_TEST(evd_wait__a_signal_interrupts),
      ENDS_TEST(signals__run_on_no_thread_of_ours),
      ENDS_TEST(evd_set_unwaitable__wakes_the_waiter),
      ENDS_TEST(evd_post_se__bounded),
      ENDS_TEST(evd_overflow__of_completions),
  };
  return RUN_TESTS(tests);
}
