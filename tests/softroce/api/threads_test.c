/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * One IA opened thread-safe, and threads that do everything on it at once: several transfer on one EP, several take
 * events, regions and windows are made and freed during syncs, connections, a shared receive queue, EVDs whose CNO and
 * size change. Then an IA that is not thread-safe, where the program serializes only posts to one EP. Run it in a build
 * with ThreadSanitizer, which detects races that no assertion can.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/softroce/api/api.h"

#define ROUNDS 150

struct shared {
  struct fixture f;
  DAT_CNO_HANDLE cno;
  DAT_SRQ_HANDLE srq;
  DAT_EVD_HANDLE busy_evd; /* software events; every thread posts to it */
  bool done;               /* atomically */
  int failures;            /* atomically: threads must not longjmp */
  int sent, written, received, connected;
};

static void fail_at(struct shared* s, const char* what, DAT_RETURN status) {
  const char *major = "", *minor = "";
  dat_strerror(status, &major, &minor);
  print_error("%s: %s %s\n", what, major, minor);
  __atomic_add_fetch(&s->failures, 1, __ATOMIC_SEQ_CST);
}

/* For the threads: counts unexpected results. */
#define EXPECT_OK(call)                                                 \
  do {                                                                  \
    const DAT_RETURN expect_status = (call);                            \
    if (expect_status != DAT_SUCCESS) fail_at(s, #call, expect_status); \
  } while (0)

static bool is_done(const struct shared* s) {
  return __atomic_load_n(&s->done, __ATOMIC_SEQ_CST);
}

static bool full(DAT_RETURN status) {
  return DAT_GET_TYPE(status) == DAT_INSUFFICIENT_RESOURCES;
}

/* Two of these share the active EP. */
static void* post_writes(void* argument) {
  struct shared* s = argument;
  for (int i = 0; i < ROUNDS;) {
    DAT_LMR_TRIPLET from = local(&s->f, 0, 64);
    const DAT_RMR_TRIPLET to = remote(&s->f, HALF, 64);
    const DAT_RETURN status =
        dat_ep_post_rdma_write(s->f.active.ep, 1, &from, cookie((uint64_t)i), &to,
                               i % 3 ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG);
    if (full(status)) {
      usleep(200);
      continue;
    }
    EXPECT_OK(status);
    if (i % 3) __atomic_add_fetch(&s->written, 1, __ATOMIC_SEQ_CST);
    ++i;
  }
  return NULL;
}

static void* post_sends(void* argument) {
  struct shared* s = argument;
  for (int i = 0; i < ROUNDS;) {
    DAT_LMR_TRIPLET to = local(&s->f, HALF + 4096, 64), from = local(&s->f, 4096, 64);
    DAT_RETURN status = dat_ep_post_recv(s->f.passive.ep, 1, &to, cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
    if (!full(status)) {
      EXPECT_OK(status);
      do {
        status = dat_ep_post_send(s->f.active.ep, 1, &from, cookie(2), DAT_COMPLETION_DEFAULT_FLAG);
        if (full(status)) usleep(200);
      } while (full(status));
      EXPECT_OK(status);
      __atomic_add_fetch(&s->sent, 1, __ATOMIC_SEQ_CST);
      ++i;
    }
    usleep(100);
  }
  return NULL;
}

/* Two threads take from each EVD: one waits, one dequeues, and each may find the other inside. */
static void take(struct shared* s, DAT_EVD_HANDLE evd, bool waits) {
  DAT_EVENT event;
  DAT_COUNT more;
  const DAT_RETURN status = waits ? dat_evd_wait(evd, 2000, 1, &event, &more) : dat_evd_dequeue(evd, &event);
  if (status == DAT_SUCCESS) {
    if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
      if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) fail_at(s, "a transfer", DAT_ABORT);
      __atomic_add_fetch(&s->received, 1, __ATOMIC_SEQ_CST);
    }
    return;
  }
  if (DAT_GET_TYPE(status) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY &&
      DAT_GET_TYPE(status) != DAT_INVALID_STATE) {
    fail_at(s, "taking an event", status);
  }
  if (!waits) usleep(500);
}

static void* wait_for_events(void* argument) {
  struct shared* s = argument;
  while (!is_done(s)) {
    take(s, s->f.active.request, true);
    take(s, s->f.passive.recv, false);
    take(s, s->busy_evd, true);
  }
  return NULL;
}

static void* dequeue_events(void* argument) {
  struct shared* s = argument;
  while (!is_done(s)) {
    take(s, s->f.passive.recv, true);
    take(s, s->f.active.request, false);
    take(s, s->busy_evd, false);
  }
  return NULL;
}

static void* wait_on_cno(void* argument) {
  struct shared* s = argument;
  while (!is_done(s)) {
    DAT_EVD_HANDLE evd;
    const DAT_RETURN status = dat_cno_wait(s->cno, 2000, &evd);
    if (status != DAT_SUCCESS && DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY) fail_at(s, "dat_cno_wait", status);
  }
  return NULL;
}

/* Regions and windows are made and freed while others look theirs up. */
static void* make_regions(void* argument) {
  struct shared* s = argument;
  for (int i = 0; i < ROUNDS; ++i) {
    DAT_REGION_DESCRIPTION region;
    DAT_LMR_CONTEXT context;
    DAT_LMR_HANDLE lmr;
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_LMR_TRIPLET segment = local(&s->f, 8192, 4096);
    region.for_va = s->f.memory + 8192;
    EXPECT_OK(dat_lmr_create(s->f.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, s->f.pz, DAT_MEM_PRIV_ALL_FLAG,
                             DAT_VA_TYPE_VA, &lmr, &context, NULL, NULL, NULL));
    if (!on_iwarp()) EXPECT_OK(dat_rmr_create(s->f.pz, &rmr));
    EXPECT_OK(dat_lmr_sync_rdma_read(s->f.ia, &segment, 1));
    segment.lmr_context = context;
    EXPECT_OK(dat_lmr_sync_rdma_write(s->f.ia, &segment, 1));
    if (!on_iwarp()) EXPECT_OK(dat_rmr_free(rmr));
    EXPECT_OK(dat_lmr_free(lmr));
  }
  return NULL;
}

/* Several of these at once, to the same service point. */
static void* make_connections(void* argument) {
  struct shared* s = argument;
  struct end end;
  DAT_COUNT more;
  DAT_EVENT event;
  DAT_EP_PARAM param;
  EXPECT_OK(dat_evd_create(s->f.ia, 16, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &end.connect));
  for (int i = 0; i < ROUNDS / 15; ++i) {
    DAT_LMR_TRIPLET to = local(&s->f, HALF + 8192, 64);
    EXPECT_OK(dat_ep_create_with_srq(s->f.ia, s->f.pz, end.connect, end.connect, end.connect, s->srq, NULL, &end.ep));
    EXPECT_OK(dat_srq_post_recv(s->srq, 1, &to, cookie(3)));
    EXPECT_OK(dat_ep_connect(end.ep, s->f.attr.ia_address_ptr, s->f.port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG));
    EXPECT_OK(dat_ep_query(end.ep, DAT_EP_FIELD_ALL, &param));
    EXPECT_OK(dat_evd_wait(end.connect, WAIT_US, 1, &event, &more));
    if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) fail_at(s, "a connection", DAT_ABORT);
    __atomic_add_fetch(&s->connected, 1, __ATOMIC_SEQ_CST);
    EXPECT_OK(dat_ep_disconnect(end.ep, i % 2 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG));
    EXPECT_OK(dat_evd_wait(end.connect, WAIT_US, 1, &event, &more));
    if (i % 3 == 0) EXPECT_OK(dat_ep_reset(end.ep));
    EXPECT_OK(dat_ep_free(end.ep));
  }
  EXPECT_OK(dat_evd_free(end.connect));
  return NULL;
}

/* Accepts every request with an EP of its own, and frees the EP when its connection has ended. */
static void* accept_connections(void* argument) {
  struct shared* s = argument;
  DAT_EVD_HANDLE evd;
  EXPECT_OK(dat_evd_create(s->f.ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
  while (!is_done(s)) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_EP_HANDLE ep;
    if (dat_evd_wait(s->f.requests, 1000, 1, &event, &more) == DAT_SUCCESS) {
      EXPECT_OK(dat_ep_create(s->f.ia, s->f.pz, evd, evd, evd, NULL, &ep));
      EXPECT_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
    }
    while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
      if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
        EXPECT_OK(dat_ep_free(event.event_data.connect_event_data.ep_handle));
      }
    }
  }
  return NULL;
}

/* An EVD that changes while others use it, and objects of every other kind. */
static void* change_things(void* argument) {
  struct shared* s = argument;
  for (int i = 0; i < ROUNDS; ++i) {
    DAT_EVENT event;
    DAT_EVD_PARAM evd_param;
    DAT_SRQ_PARAM srq_param;
    DAT_PSP_HANDLE psp;
    DAT_CONN_QUAL qual;
    DAT_RETURN status;
    memset(&event, 0, sizeof event);
    event.event_number = DAT_SOFTWARE_EVENT;
    status = dat_evd_post_se(s->busy_evd, &event);
    if (DAT_GET_TYPE(status) != DAT_QUEUE_FULL) EXPECT_OK(status);
    EXPECT_OK(dat_evd_modify_cno(s->busy_evd, i % 2 ? s->cno : DAT_HANDLE_NULL));
    EXPECT_OK(dat_evd_modify_cno(s->f.active.request, i % 2 ? DAT_HANDLE_NULL : s->cno));
    EXPECT_OK(i % 3 ? dat_evd_disable(s->busy_evd) : dat_evd_enable(s->busy_evd));
    EXPECT_OK(i % 4 ? dat_evd_clear_unwaitable(s->busy_evd) : dat_evd_set_unwaitable(s->busy_evd));
    EXPECT_OK(dat_evd_query(s->busy_evd, DAT_EVD_FIELD_ALL, &evd_param));
    EXPECT_OK(dat_srq_query(s->srq, DAT_SRQ_FIELD_ALL, &srq_param));
    if (i % 10 == 0) {
      /* Software iWARP cannot make room, but accepts sizes that already fit. */
      EXPECT_OK(dat_evd_resize(s->f.passive.recv, on_iwarp() ? 64 : 64 + i));
      EXPECT_OK(dat_srq_resize(s->srq, on_iwarp() ? 256 : 256 + i));
      EXPECT_OK(dat_psp_create_any(s->f.ia, &qual, s->f.requests, DAT_PSP_CONSUMER_FLAG, &psp));
      EXPECT_OK(dat_psp_free(psp));
    }
  }
  return NULL;
}

static void open_thread_safe(struct fixture* f) {
  assert_ok(dat_ia_openv((DAT_NAME_PTR)IA_NAME, 8, &f->async, &f->ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
  assert_ok(dat_ia_query(f->ia, NULL, DAT_IA_FIELD_ALL, &f->attr, DAT_PROVIDER_FIELD_ALL, &f->provider));
  assert_int_equal(f->provider.is_thread_safe, DAT_TRUE);
  assert_ok(dat_pz_create(f->ia, &f->pz));
  register_memory(f);
}

static void set_up(struct shared* s) {
  const DAT_OS_WAIT_PROXY_AGENT no_agent = {NULL, NULL};
  DAT_SRQ_ATTR attr = {256, 2, 0};
  struct fixture* f = &s->f;
  memset(s, 0, sizeof *s);
  open_thread_safe(f);
  make_end(f, &f->active, NULL);
  make_end(f, &f->passive, NULL);
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &f->requests));
  assert_ok(dat_psp_create_any(f->ia, &f->port, f->requests, DAT_PSP_CONSUMER_FLAG, &f->psp));
  connect_ends(f);
  assert_ok(dat_cno_create(f->ia, no_agent, &s->cno));
  assert_ok(dat_srq_create(f->ia, f->pz, &attr, &s->srq));
  assert_ok(dat_evd_create(f->ia, 64, s->cno, DAT_EVD_SOFTWARE_FLAG, &s->busy_evd));
}

static void ia__everything_at_once(void** state) {
  /* The workers end by themselves, and then the threads that serve them. */
  static void* (*const workers[])(void*) = {post_writes,  post_writes,      post_sends,       make_regions,
                                            make_regions, make_connections, make_connections, change_things};
  static void* (*const servants[])(void*) = {wait_for_events, dequeue_events, wait_on_cno, accept_connections};
  enum { kWorkers = sizeof workers / sizeof *workers, kServants = sizeof servants / sizeof *servants };
  static struct shared s;
  static pthread_t threads[kWorkers + kServants];
  (void)state;
  set_up(&s);
  for (int i = 0; i < kServants; ++i) {
    assert_int_equal(pthread_create(&threads[kWorkers + i], NULL, servants[i], &s), 0);
  }
  for (int i = 0; i < kWorkers; ++i) assert_int_equal(pthread_create(&threads[i], NULL, workers[i], &s), 0);
  for (int i = 0; i < kWorkers; ++i) pthread_join(threads[i], NULL);
  /* Posted requests complete, and a thread takes the completions. */
  for (int patience = 20000; __atomic_load_n(&s.received, __ATOMIC_SEQ_CST) < 2 * s.sent + s.written && patience > 0;
       --patience) {
    usleep(1000);
  }
  __atomic_store_n(&s.done, true, __ATOMIC_SEQ_CST);
  for (int i = 0; i < kServants; ++i) pthread_join(threads[kWorkers + i], NULL);
  assert_int_equal(s.failures, 0);
  assert_int_equal(s.received, 2 * s.sent + s.written);
  assert_int_equal(s.connected, 2 * (ROUNDS / 15));
  assert_ok(dat_ia_close(s.f.ia, DAT_CLOSE_ABRUPT_FLAG));
  munmap(s.f.memory, MEMORY_SIZE);
}

/* Receives and sends on an EP that another thread tries to connect without success, and resets. */
static void* post_without_end(void* argument) {
  struct shared* s = argument;
  const struct fixture* f = &s->f;
  while (!is_done(s)) {
    DAT_LMR_TRIPLET segment = local(f, 0, 64);
    const DAT_RETURN received = dat_ep_post_recv(f->active.ep, 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
    if (received != DAT_SUCCESS && !full(received)) fail_at(s, "posting a receive", received);
    const DAT_RETURN sent = dat_ep_post_send(f->active.ep, 1, &segment, cookie(2), DAT_COMPLETION_DEFAULT_FLAG);
    if (sent != DAT_SUCCESS && !full(sent) && DAT_GET_TYPE(sent) != DAT_INVALID_STATE) fail_at(s, "a send", sent);
    __atomic_add_fetch(&s->sent, 1, __ATOMIC_SEQ_CST);
  }
  return NULL;
}

/* Runs rounds until that time, but no fewer than these: a busy machine has few switches between threads in a second. */
enum { kSecondsOfRounds = 15, kMinRounds = 30 };

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void ep_reset__beside_posts(void** state) {
  static struct shared s;
  const struct fixture* f = &s.f;
  pthread_t poster;
  (void)state;
  memset(&s, 0, sizeof s);
  open_thread_safe(&s.f);
  make_end(&s.f, &s.f.active, NULL);
  assert_int_equal(pthread_create(&poster, NULL, post_without_end, &s), 0);
  const double end = seconds_now() + kSecondsOfRounds;
  for (int round = 0; round < 2 * ROUNDS && (round < kMinRounds || seconds_now() < end); ++round) {
    DAT_EVENT event;
    const int before = __atomic_load_n(&s.sent, __ATOMIC_SEQ_CST);
    /* Nobody listens there. */
    assert_ok(dat_ep_connect(f->active.ep, f->attr.ia_address_ptr, 1, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG));
    assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG));
    while (__atomic_load_n(&s.sent, __ATOMIC_SEQ_CST) == before) usleep(100);
    while (dat_evd_dequeue(f->active.connect, &event) == DAT_SUCCESS) continue;
    while (dat_evd_dequeue(f->active.recv, &event) == DAT_SUCCESS) continue;
    while (dat_evd_dequeue(f->active.request, &event) == DAT_SUCCESS) continue;
    assert_ok(dat_ep_reset(f->active.ep));
  }
  __atomic_store_n(&s.done, true, __ATOMIC_SEQ_CST);
  pthread_join(poster, NULL);
  assert_int_equal(s.failures, 0);
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  munmap(s.f.memory, MEMORY_SIZE);
}

/* On an IA that is not thread-safe the program must serialize only posts to one endpoint. */
#define UNSERIALIZED 3000

struct unserialized {
  struct fixture* f;
  DAT_CNO_HANDLE cno;
  unsigned char seen[UNSERIALIZED];
  int taken; /* atomically */
};

static void note(struct unserialized* u, const DAT_EVENT* event) {
  const uint64_t number = event->event_data.dto_completion_event_data.user_cookie.as_64;
  if (event->event_number == DAT_DTO_COMPLETION_EVENT && number < UNSERIALIZED) ++u->seen[number];
  __atomic_add_fetch(&u->taken, 1, __ATOMIC_SEQ_CST);
}

static bool goes_on(const struct unserialized* u, int* patience) {
  return __atomic_load_n(&u->taken, __ATOMIC_SEQ_CST) < UNSERIALIZED && --*patience > 0;
}

static void* take_by_waiting(void* argument) {
  struct unserialized* u = argument;
  DAT_EVENT event;
  DAT_COUNT more;
  for (int patience = 10000; goes_on(u, &patience);) {
    if (dat_evd_wait(u->f->active.request, 10000, 1, &event, &more) != DAT_SUCCESS) continue;
    note(u, &event);
    patience = 10000;
  }
  return NULL;
}

static void* take_by_polling(void* argument) {
  struct unserialized* u = argument;
  DAT_EVENT event;
  for (int patience = 100000; goes_on(u, &patience);) {
    if (dat_evd_dequeue(u->f->active.request, &event) == DAT_SUCCESS) {
      note(u, &event);
      patience = 100000;
    } else {
      usleep(100);
    }
  }
  return NULL;
}

static void* wait_for_the_cno(void* argument) {
  struct unserialized* u = argument;
  DAT_EVD_HANDLE evd;
  for (int patience = 100000; goes_on(u, &patience);) (void)dat_cno_wait(u->cno, 1000, &evd);
  return NULL;
}

static void post_beside(struct fixture* f, void* (*taker)(void*), bool with_cno) {
  const DAT_OS_WAIT_PROXY_AGENT no_agent = {NULL, NULL};
  static struct unserialized u;
  pthread_t threads[2];
  memset(&u, 0, sizeof u);
  u.f = f;
  if (with_cno) {
    assert_ok(dat_cno_create(f->ia, no_agent, &u.cno));
    assert_ok(dat_evd_modify_cno(f->active.request, u.cno));
    assert_int_equal(pthread_create(&threads[1], NULL, wait_for_the_cno, &u), 0);
  }
  assert_int_equal(pthread_create(&threads[0], NULL, taker, &u), 0);
  for (uint64_t i = 0; i < UNSERIALIZED; ++i) {
    DAT_LMR_TRIPLET from = local(f, 0, 64);
    const DAT_RMR_TRIPLET to = remote(f, HALF, 64);
    assert_posted(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(i), &to, DAT_COMPLETION_DEFAULT_FLAG));
  }
  pthread_join(threads[0], NULL);
  if (with_cno) pthread_join(threads[1], NULL);
  for (int i = 0; i < UNSERIALIZED; ++i) assert_int_equal(u.seen[i], 1);
}

static void evd_wait__beside_posts_on_an_ia_that_is_not_thread_safe(void** state) {
  post_beside(*state, take_by_waiting, false);
}

static void evd_dequeue__beside_a_wait_on_the_cno_likewise(void** state) {
  post_beside(*state, take_by_polling, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ep_reset__beside_posts),
      cmocka_unit_test(ia__everything_at_once),
      CONNECTED_TEST(evd_wait__beside_posts_on_an_ia_that_is_not_thread_safe),
      CONNECTED_TEST(evd_dequeue__beside_a_wait_on_the_cno_likewise),
  };
  return RUN_TESTS(tests);
}
