/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A consumer ends a connection. Flushed requests, whose completions another thread takes as they arrive, must not be
 * reported as a broken connection, neither on this connection nor on the next one of the same endpoint. A graceful end
 * flushes nothing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/softroce/api/api.h"

enum { kRounds = 10, kReceives = 16 };

struct taker {
  DAT_EVD_HANDLE evd;
  atomic_int flushed;
  atomic_int other; /* statuses */
  atomic_bool stop;
};

static void* take(void* argument) {
  struct taker* taker = argument;
  DAT_EVENT event;
  while (!taker->stop) {
    if (dat_evd_dequeue(taker->evd, &event) != DAT_SUCCESS) continue;
    if (event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED) {
      ++taker->flushed;
    } else {
      ++taker->other;
    }
  }
  return NULL;
}

static void open_thread_safe(struct fixture* f) {
  memset(f, 0, sizeof *f);
  assert_ok(dat_ia_openv((DAT_NAME_PTR)IA_NAME, 8, &f->async, &f->ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
  assert_ok(dat_ia_query(f->ia, NULL, DAT_IA_FIELD_ALL, &f->attr, DAT_PROVIDER_FIELD_ALL, &f->provider));
  assert_ok(dat_pz_create(f->ia, &f->pz));
  register_memory(f);
  make_end(f, &f->active, NULL);
  make_end(f, &f->passive, NULL);
  listen_any(f);
}

/*
 * Neither the end of the connection nor its flushed requests may be reported as a broken connection, also not on the
 * next one.
 */
static void one_round(struct fixture* f, struct taker* taker, DAT_CLOSE_FLAGS flags) {
  DAT_LMR_TRIPLET segment = local(f, 0, 100);
  const int before = taker->flushed;
  connect_ends(f);
  expect_nothing(f->active.connect);
  for (uint64_t i = 0; i < kReceives; ++i) {
    assert_ok(dat_ep_post_recv(f->active.ep, 1, &segment, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
  }
  assert_ok(dat_ep_disconnect(f->active.ep, flags));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  for (int i = 0; i < 20000 && taker->flushed < before + kReceives; ++i) usleep(1000);
  assert_int_equal(taker->flushed, before + kReceives);
  assert_int_equal(taker->other, 0);
  expect_nothing(f->active.connect);
  expect_nothing(f->passive.connect);
  assert_ok(dat_ep_reset(f->active.ep));
  assert_ok(dat_ep_reset(f->passive.ep));
}

static void disconnect__what_is_flushed_meanwhile_breaks_nothing(void** state) {
  struct fixture f;
  struct taker taker;
  pthread_t thread;
  (void)state;
  open_thread_safe(&f);
  memset(&taker, 0, sizeof taker);
  taker.evd = f.active.recv;
  assert_int_equal(pthread_create(&thread, NULL, take, &taker), 0);
  for (int i = 0; i < kRounds; ++i) {
    one_round(&f, &taker, i % 2 ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
  }
  taker.stop = true;
  pthread_join(thread, NULL);
  munmap(f.memory, MEMORY_SIZE);
  assert_ok(dat_ia_close(f.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* ---- Graceful: posted requests complete first ---- */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the time that the disconnect took. */
static double disconnect_after_a_suppressed_request(struct fixture* f) {
  DAT_LMR_TRIPLET from = local(f, 0, 5000);
  DAT_RMR_TRIPLET to = remote(f, HALF, 5000);
  fill(f->memory, 5000, 3);
  memset(f->memory + HALF, 0, 5000);
  sync_for_write(f, HALF, 5000);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(1), &to, DAT_COMPLETION_SUPPRESS_FLAG));
  const double begun = now_s();
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  const double took = now_s() - begun;
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  sync_for_write(f, HALF, 5000);
  assert_true(is_filled(f->memory + HALF, 5000, 3));
  expect_nothing(f->active.request); /* the request that drains makes no event */
  expect_nothing(f->passive.recv);
  expect_nothing(f->active.connect);
  print_message("a graceful disconnect behind a suppressed request took %.3f s\n", took);
  return took;
}

static void graceful__after_a_suppressed_request_loses_no_time(void** state) {
  double took = 1e9;
  (void)state;
  /* The best of several times, so that other programs on the machine do not matter. */
  for (int i = 0; i < 3 && took >= 1.5; ++i) {
    void* own = NULL;
    assert_int_equal(set_up_connected(&own), 0);
    took = disconnect_after_a_suppressed_request(own);
    tear_down(&own);
  }
  assert_true(took < 1.5);
}

static void graceful__requests_that_make_progress_have_all_the_time(void** state) {
  enum { kRequests = 8 };
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 1000);
  SKIP_ON_IWARP(); /* on iWARP a message does not wait for its receive */
  for (uint64_t i = 0; i < kRequests; ++i) {
    assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
  }
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  for (uint64_t i = 0; i < kRequests; ++i) {
    DAT_LMR_TRIPLET to = local(f, HALF + 1000 * (size_t)i, 1000);
    usleep(500000);
    assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(100 + i), DAT_COMPLETION_DEFAULT_FLAG));
    expect_dto(f->passive.recv, 100 + i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
  }
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  for (uint64_t i = 0; i < kRequests; ++i) {
    expect_dto(f->active.request, i, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  }
}

/* A request that nobody receives is given up in the end. */
static void graceful__requests_without_progress_are_flushed(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 1000);
  SKIP_ON_IWARP();
  assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  const double begun = now_s();
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_GRACEFUL_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_true(now_s() - begun >= 1.9);
  expect_dto(f->active.request, 1, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(disconnect__what_is_flushed_meanwhile_breaks_nothing),
      cmocka_unit_test(graceful__after_a_suppressed_request_loses_no_time),
      CONNECTED_TEST(graceful__requests_that_make_progress_have_all_the_time),
      CONNECTED_TEST(graceful__requests_without_progress_are_flushed),
  };
  return RUN_TESTS(tests);
}
