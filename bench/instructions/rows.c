/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-instructions-dat IA, bench-instructions-verbs ADDRESS: run under callgrind, which counts only between COLLECT's
 * two ends and writes a file for each row, named "ROW EVENTS REGIONS". The program waits for completions outside that
 * part, so the device's speed does not matter. If a completion is missing inside it, the row is repeated with a longer
 * wait.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "bench/common/check.h"
#include "bench/instructions/traffic.h"

#define COLLECT(statement)    \
  do {                        \
    CALLGRIND_TOGGLE_COLLECT; \
    statement;                \
    CALLGRIND_TOGGLE_COLLECT; \
  } while (0)

#define EVENTS 256 /* of each row */
#define WARM_UP 2  /* rounds before the counted ones, which bind symbols and fill the libraries' caches */
#define MAX_PATIENCE_US 500000U
#define SLEEP_US 5000 /* long enough for the other thread to fall asleep */

static unsigned int patience_us;

static void drain(bool (*take)(uint64_t), unsigned int from, unsigned int count) {
  for (unsigned int i = from; i < count; ++i) {
    while (!take(i)) usleep(100);
  }
}

/* Takes count completions that should be there, and counts the instructions. False: one was missing. */
static bool collect_all(bool (*take)(uint64_t), unsigned int count) {
  unsigned int taken = 0;
  usleep(patience_us);
  COLLECT(while (taken < count && take(taken))++ taken);
  drain(take, taken, count);
  return taken == count;
}

static void post_recvs(unsigned int count) {
  for (unsigned int i = 0; i < count; ++i) post_recv(i);
}

static void post_sends(unsigned int count) {
  for (unsigned int i = 0; i < count; ++i) post_send(i);
}

static void post_writes(unsigned int count) {
  for (unsigned int i = 0; i < count; ++i) post_write(i);
}

/* The rows. Each round has count requests at a time. */

static bool nothing(unsigned int count) {
  (void)count;
  COLLECT();
  return true;
}

static bool rdma_write(unsigned int count) {
  COLLECT(post_writes(count));
  return collect_all(take_request, count);
}

static bool send(unsigned int count) {
  bool good;
  post_recvs(count);
  COLLECT(post_sends(count));
  good = collect_all(take_request, count);
  drain(take_recv, 0, count);
  return good;
}

static bool receive(unsigned int count) {
  bool good;
  COLLECT(post_recvs(count));
  post_sends(count);
  good = collect_all(take_recv, count);
  drain(take_request, 0, count);
  return good;
}

static bool empty(unsigned int count) {
  unsigned int found = 0;
  COLLECT(for (unsigned int i = 0; i < count; ++i) found += take_recv(i));
  check(found == 0, "a completion of nothing");
  return true;
}

/* When the sender's completion has arrived, the receiver's has too. */
static bool wait_there(unsigned int count) {
  post_recvs(count);
  post_sends(count);
  drain(take_request, 0, count);
  usleep(patience_us);
  COLLECT(for (unsigned int i = 0; i < count; ++i) wait_recv(i));
  return true;
}

static sem_t sleeper_waits, sent;

static void* wake_sleeper(void* rounds) {
  for (unsigned int i = *(const unsigned int*)rounds; i > 0; --i) {
    while (sem_wait(&sleeper_waits)) {
    }
    usleep(SLEEP_US);
    post_send(0);
    sem_post(&sent);
  }
  return NULL;
}

static bool wait_asleep(unsigned int count) {
  (void)count;
  post_recv(0);
  sem_post(&sleeper_waits);
  COLLECT(wait_recv(0));
  while (sem_wait(&sent)) {
  }
  drain(take_request, 0, 1);
  return true;
}

struct row {
  const char* name;
  bool (*round)(unsigned int count);
  unsigned int outstanding;
  unsigned int regions; /* that a round counts */
};

static const struct row rows[] = {
    {"nothing", nothing, 1, 1},  {"write", rdma_write, 1, 2},  {"write", rdma_write, 64, 2}, {"send", send, 1, 2},
    {"send", send, 64, 2},       {"receive", receive, 1, 2},   {"receive", receive, 64, 2},  {"wait", wait_there, 1, 1},
    {"wait", wait_there, 64, 1}, {"sleep", wait_asleep, 1, 1}, {"empty", empty, 1, 1},
};

static bool run_rounds(const struct row* row, unsigned int rounds) {
  for (unsigned int i = 0; i < WARM_UP; ++i) (void)row->round(row->outstanding);
  CALLGRIND_ZERO_STATS;
  for (unsigned int i = 0; i < rounds; ++i) {
    if (!row->round(row->outstanding)) return false;
  }
  return true;
}

static void run(const struct row* row) {
  const unsigned int rounds = EVENTS / row->outstanding;
  char label[80];
  for (patience_us = 1000 + row->outstanding * 200; !run_rounds(row, rounds); patience_us *= 2) {
    check(patience_us < MAX_PATIENCE_US, "completions do not come");
  }
  snprintf(label, sizeof label, "%s %u %u %u", row->name, row->outstanding, EVENTS, rounds * row->regions);
  CALLGRIND_DUMP_STATS_AT(label);
}

int main(int argc, char** argv) {
  unsigned int rounds = WARM_UP + EVENTS;
  pthread_t waker;
  check(argc == 2, "give the IA or the address");
  traffic_open(argv[1]);
  sem_init(&sleeper_waits, 0, 0);
  sem_init(&sent, 0, 0);
  check(pthread_create(&waker, NULL, wake_sleeper, &rounds) == 0, "no thread");
  for (unsigned int i = 0; i < sizeof rows / sizeof rows[0]; ++i) run(&rows[i]);
  pthread_join(waker, NULL);
  traffic_close();
  return 0;
}
