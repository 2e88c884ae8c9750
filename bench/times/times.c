/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-times-dat IA BATCHES, bench-times-verbs ADDRESS BATCHES, bench-times-rpma ADDRESS BATCHES: the time of a post
 * and of taking its completion, for the traffic whose instructions bench/instructions counts. Prints lines ROW
 * OUTSTANDING NS.
 *
 * The program sleeps between the posts and the completions, in which the device does the rest. A figure is the time of
 * one post of the quickest run of posts, which only queue their requests, plus the time of one completion of the
 * quickest batch. So it contains what the library adds and little of the device. The time of a single completion says
 * little, because a library may take several at once. The time of a single post says little, because some processors
 * count time in steps of 10 ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/check.h"
#include "bench/instructions/traffic.h"

#define WARM_UP 20U /* batches */
#define POSTS_OF_A_RUN 16U
#define MAX_PATIENCE_US 100000U

_Static_assert(MAX_OUTSTANDING % POSTS_OF_A_RUN == 0, "a batch consists of whole runs");

/* The time that now_ns() itself takes. */
static double clock_ns(void) {
  double least = 1e9;
  for (int i = 0; i < 10000; ++i) {
    const double begin = now_ns();
    const double took = now_ns() - begin;
    if (took < least) least = took;
  }
  return least;
}

struct row {
  const char* name;
  void (*post)(uint64_t number);   /* timed */
  bool (*take)(uint64_t number);   /* timed */
  void (*before)(uint64_t number); /* what the peer must post first, or NULL */
  void (*after)(uint64_t number);  /* what the peer posts then, or NULL */
  bool (*rest)(uint64_t number);   /* the peer's completions, or NULL */
  unsigned int outstanding;
};

static const struct row rows[] = {
    {"write", post_write, take_request, NULL, NULL, NULL, MAX_OUTSTANDING},
    {"send", post_send, take_request, post_recv, NULL, take_recv, MAX_OUTSTANDING},
    {"receive", post_recv, take_recv, NULL, post_send, take_request, MAX_OUTSTANDING},
};

struct batch {
  double post_ns;
  double take_ns; /* negative: a completion was late */
};

/* Posts count requests, and returns the time of the quickest run of posts. */
static double post_and_time(void (*post)(uint64_t), unsigned int count) {
  double least = 1e18;
  for (unsigned int i = 0; i < count;) {
    const unsigned int end = i + POSTS_OF_A_RUN;
    const double begin = now_ns();
    while (i < end) post(i++);
    const double took = now_ns() - begin;
    if (took < least) least = took;
  }
  return least;
}

static void post_all(void (*post)(uint64_t), unsigned int count) {
  for (unsigned int i = 0; post && i < count; ++i) post(i);
}

static void drain(bool (*take)(uint64_t), unsigned int from, unsigned int count) {
  for (unsigned int i = from; take && i < count; ++i) {
    while (!take(i)) usleep(100);
  }
}

static struct batch run_batch(const struct row* row, unsigned int patience_us) {
  struct batch batch;
  unsigned int taken = 0;
  double begin;
  post_all(row->before, row->outstanding);
  batch.post_ns = post_and_time(row->post, row->outstanding);
  post_all(row->after, row->outstanding);
  usleep(patience_us);
  begin = now_ns();
  while (taken < row->outstanding && row->take(taken)) ++taken;
  batch.take_ns = now_ns() - begin;
  if (taken < row->outstanding) batch.take_ns = -1;
  drain(row->take, taken, row->outstanding);
  drain(row->rest, 0, row->outstanding);
  return batch;
}

static double run(const struct row* row, unsigned int batches) {
  double post_ns = 1e18, take_ns = 1e18;
  unsigned int patience_us = 100 + 10 * row->outstanding, good = 0, late = 0;
  for (unsigned int i = 0; i < WARM_UP; ++i) (void)run_batch(row, patience_us);
  while (good < batches) {
    const struct batch batch = run_batch(row, patience_us);
    if (batch.post_ns < post_ns) post_ns = batch.post_ns;
    if (batch.take_ns < 0) {
      /* The device is slower than expected. */
      if (++late % 8 == 0) patience_us += patience_us / 2;
      check(patience_us < MAX_PATIENCE_US, "completions do not come");
      continue;
    }
    ++good;
    if (batch.take_ns < take_ns) take_ns = batch.take_ns;
  }
  return (post_ns - clock_ns()) / POSTS_OF_A_RUN + (take_ns - clock_ns()) / row->outstanding;
}

int main(int argc, char** argv) {
  check(argc == 3 && atoi(argv[2]) > 0, "give the IA or the address, and the number of batches");
  traffic_open(argv[1]);
  for (unsigned int i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    printf("%s %u %.1f\n", rows[i].name, rows[i].outstanding, run(&rows[i], (unsigned int)atoi(argv[2])));
    fflush(stdout);
  }
  traffic_close();
  return 0;
}
