/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Flushed work of a connection that its consumer ends: while another thread takes the completions as they come, nobody
 * is told of a broken connection, this one or the next on the same endpoint.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

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

/* How the connection ends is no news of its breaking; nor is what was flushed then, to the next. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(disconnect__what_is_flushed_meanwhile_breaks_nothing),
  };
  return RUN_TESTS(tests);
}
