/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * pthread_cancel() of a thread in a call of DAT: a wait ends, and its object can be used for the next one; other calls
 * are completed.
 */
#include <pthread.h>

#include "tests/softroce/api/api.h"

struct wait {
  DAT_EVD_HANDLE evd;
  DAT_CNO_HANDLE cno;
  bool came_back;
};

static void* wait_on_evd(void* argument) {
  struct wait* w = argument;
  DAT_EVENT event;
  DAT_COUNT more;
  (void)dat_evd_wait(w->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
  w->came_back = true;
  return NULL;
}

static void* wait_on_cno(void* argument) {
  struct wait* w = argument;
  DAT_EVD_HANDLE found;
  (void)dat_cno_wait(w->cno, DAT_TIMEOUT_INFINITE, &found);
  w->came_back = true;
  return NULL;
}

/* asleep: true if the thread may fall asleep before it is cancelled. */
static void cancel_wait(void* (*wait)(void*), struct wait* w, bool asleep) {
  pthread_t thread;
  void* end = NULL;
  w->came_back = false;
  assert_int_equal(pthread_create(&thread, NULL, wait, w), 0);
  if (asleep) usleep(100000);
  assert_int_equal(pthread_cancel(thread), 0);
  assert_int_equal(pthread_join(thread, &end), 0);
  assert_ptr_equal(end, PTHREAD_CANCELED);
  assert_false(w->came_back);
}

static void write_and_wait(struct fixture* f, uint64_t number) {
  DAT_LMR_TRIPLET from = local(f, 0, 64);
  const DAT_RMR_TRIPLET to = remote(f, HALF, 64);
  assert_posted(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(number), &to, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(f->active.request, number, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
}

/* tear_down() frees the EVDs, on which no thread may wait then. */
static void evd_wait__cancelled_then_used(void** state) {
  struct fixture* f = *state;
  const DAT_EVD_HANDLE evds[] = {f->active.request, f->active.connect, f->async, f->passive.recv};
  for (size_t i = 0; i < sizeof evds / sizeof *evds; ++i) {
    struct wait w = {.evd = evds[i]};
    cancel_wait(wait_on_evd, &w, true);
    cancel_wait(wait_on_evd, &w, false);
    expect_nothing(evds[i]);
  }
  for (uint64_t i = 0; i < 3; ++i) write_and_wait(f, i);
}

static void cno_wait__cancelled_then_used(void** state) {
  struct fixture* f = *state;
  const DAT_OS_WAIT_PROXY_AGENT no_agent = {NULL, NULL};
  struct wait w = {NULL, NULL, false};
  DAT_EVD_HANDLE found = DAT_HANDLE_NULL;
  assert_ok(dat_cno_create(f->ia, no_agent, &w.cno));
  assert_ok(dat_evd_modify_cno(f->active.request, w.cno));
  cancel_wait(wait_on_cno, &w, true);
  cancel_wait(wait_on_cno, &w, false);
  write_and_wait(f, 1);
  DAT_LMR_TRIPLET from = local(f, 0, 64);
  const DAT_RMR_TRIPLET to = remote(f, HALF, 64);
  assert_posted(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(2), &to, DAT_COMPLETION_DEFAULT_FLAG));
  assert_ok(dat_cno_wait(w.cno, WAIT_US, &found));
  assert_ptr_equal(found, f->active.request);
  expect_dto(f->active.request, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
  assert_ok(dat_evd_modify_cno(f->active.request, DAT_HANDLE_NULL));
  assert_ok(dat_cno_free(w.cno));
}

struct calls {
  struct fixture* f;
  int done;
  DAT_RETURN status[8];
};

static void* make_and_free(void* argument) {
  struct calls* c = argument;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  pthread_cancel(pthread_self());
  c->status[c->done++] = dat_pz_create(c->f->ia, &pz);
  c->status[c->done++] = dat_evd_create(c->f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd);
  c->status[c->done++] = dat_ep_create(c->f->ia, pz, evd, evd, c->f->active.connect, NULL, &ep);
  c->status[c->done++] = dat_ep_free(ep);
  c->status[c->done++] = dat_evd_free(evd);
  c->status[c->done++] = dat_pz_free(pz);
  pthread_testcancel();
  return NULL;
}

static void calls__are_done_whole(void** state) {
  struct calls c = {.f = *state};
  pthread_t thread;
  void* end = NULL;
  assert_int_equal(pthread_create(&thread, NULL, make_and_free, &c), 0);
  assert_int_equal(pthread_join(thread, &end), 0);
  assert_ptr_equal(end, PTHREAD_CANCELED);
  assert_int_equal(c.done, 6);
  for (int i = 0; i < c.done; ++i) assert_ok(c.status[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CONNECTED_TEST(evd_wait__cancelled_then_used),
      CONNECTED_TEST(cno_wait__cancelled_then_used),
      CONNECTED_TEST(calls__are_done_whole),
  };
  return RUN_TESTS(tests);
}
