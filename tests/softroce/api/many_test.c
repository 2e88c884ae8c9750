/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A thousand endpoints with three EVDs each under the usual limit of 1,024 descriptors. The last two are connected to
 * each other; their EVDs are among those that share a completion channel.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/softroce/api/api.h"

enum { kEnds = 1000, kMessages = 300 };
static struct end ends[kEnds];

static int num_descriptors(void) {
  DIR* folder = opendir("/proc/self/fd");
  int count = -3; /* ".", "..", and the folder's own */
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

/* This process' memory, in KiB. */
static long resident(void) {
  char line[256];
  long size = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file)) (void)sscanf(line, "VmRSS: %ld", &size);
  fclose(file);
  return size;
}

static int set_up_many(void** state) {
  const struct rlimit usual = {1024, 1024};
  struct fixture* f;
  long before;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
  set_up_ia(state);
  f = *state;
  before = resident();
  for (int i = 0; i < kEnds; ++i) make_end(f, &ends[i], NULL);
  print_message("%d ends: %d descriptors, %ld KiB each in this process\n", kEnds, num_descriptors(),
                (resident() - before) / kEnds);
  f->active = ends[kEnds - 2];
  f->passive = ends[kEnds - 1];
  listen_any(f);
  connect_ends(f);
  return 0;
}

static void send_one(struct fixture* f, uint64_t number) {
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  assert_posted(dat_ep_post_send(f->active.ep, 1, &from, cookie(number), DAT_COMPLETION_SUPPRESS_FLAG));
}

static void expect_one(struct fixture* f, uint64_t number) {
  DAT_LMR_TRIPLET to = local(f, HALF, 8);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &to, cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
}

static void many__leave_descriptors_to_the_program(void** state) {
  (void)state;
  /* A channel of the software device is a pipe, so each of some 260 takes two. */
  assert_true(num_descriptors() < (on_software_device() ? 560 : 512));
}

static void wait__time_runs_out(void** state) {
  struct fixture* f = *state;
  DAT_EVENT event;
  DAT_COUNT more;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  assert_error(dat_evd_wait(f->passive.recv, SOON_US, 1, &event, &more), DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
  clock_gettime(CLOCK_MONOTONIC, &end);
  assert_true((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000 >= SOON_US);
}

static void* send_slowly(void* state) {
  struct fixture* f = state;
  for (int i = 0; i < kMessages; ++i) {
    usleep((unsigned int)(i % 3) * 1000U);
    send_one(f, 0);
  }
  return NULL;
}

static void wait__asleep_gets_each_completion(void** state) {
  struct fixture* f = *state;
  pthread_t sender;
  for (uint64_t i = 0; i < 8; ++i) expect_one(f, i);
  assert_int_equal(pthread_create(&sender, NULL, send_slowly, f), 0);
  for (uint64_t i = 0; i < kMessages; ++i) {
    expect_dto(f->passive.recv, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS);
    if (i + 8 < kMessages) expect_one(f, i + 8);
  }
  assert_int_equal(pthread_join(sender, NULL), 0);
}

static void cno__is_told_of_each_completion(void** state) {
  struct fixture* f = *state;
  DAT_CNO_HANDLE cno;
  uint64_t next = 0;
  assert_ok(dat_cno_create(f->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
  assert_ok(dat_evd_modify_cno(f->passive.recv, cno));
  assert_ok(dat_evd_modify_cno(ends[0].recv, cno)); /* one with a channel of its own */
  for (uint64_t sent = 0; next < kMessages;) {
    DAT_EVD_HANDLE found = NULL;
    DAT_EVENT event;
    for (; sent < kMessages && sent < next + 8; ++sent) {
      expect_one(f, sent);
      send_one(f, sent);
    }
    assert_ok(dat_cno_wait(cno, WAIT_US, &found));
    assert_ptr_equal(found, f->passive.recv);
    while (dat_evd_dequeue(f->passive.recv, &event) == DAT_SUCCESS) {
      assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, next);
      ++next;
    }
  }
  assert_ok(dat_evd_modify_cno(ends[0].recv, DAT_HANDLE_NULL));
  assert_ok(dat_evd_modify_cno(f->passive.recv, DAT_HANDLE_NULL));
  assert_ok(dat_cno_free(cno));
}

static void ends__go_one_by_one(void** state) {
  const int before = num_descriptors();
  (void)state;
  for (int i = 0; i < 200; ++i) free_end(&ends[i]);
  assert_true(num_descriptors() <= before - 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many__leave_descriptors_to_the_program),
      cmocka_unit_test(wait__time_runs_out),
      cmocka_unit_test(wait__asleep_gets_each_completion),
      cmocka_unit_test(cno__is_told_of_each_completion),
      cmocka_unit_test(ends__go_one_by_one),
  };
  return cmocka_run_group_tests(tests, set_up_many, tear_down);
}
