/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-growth IA SERIES: measures the cost of one more object when there are many. SERIES is one of
 *
 *   regions      LMRs of one IA: creating and freeing one, an RDMA Write of 8 bytes to one
 *   endpoints    connected EPs of one IA: an RDMA Write of 8 bytes over each in turn
 *   evds         EVDs of one CNO: an event that wakes a thread, and its dequeue
 *   connections  connections that were made and ended before: one more
 *   processes    processes of this host that talk in pairs: a message of 8 bytes and its answer, for both ends
 *
 * Prints a line "SERIES COUNT OPERATION VALUE" for each figure: nanoseconds of CPU time of the program for an
 * operation, the median of several batches, or bytes of memory for an object. Both ends are in the program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/dat.h"

#define QUEUE 64
#define BATCHES 15
#define BATCH 200
#define PORT_BASE 20000U

enum { kRegions = 10000, kEndpoints = 1000, kEvds = 64, kConnections = 10000, kProcesses = 64, kRegionSize = 64 };

static struct ia ia;
static DAT_EVD_HANDLE completions;

static void* room(size_t count, size_t size) {
  void* made = calloc(count, size);
  check(made != NULL, "no memory");
  return made;
}

/* --- Measuring */

static double cpu_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double resident_bytes(void) {
  long whole = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  check(file != NULL && fscanf(file, "%ld %ld", &whole, &resident) == 2, "/proc/self/statm cannot be read");
  fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return left < right ? -1 : left > right;
}

static void say(const char* series, int count, const char* operation, double value) {
  printf("%s %d %s %.1f\n", series, count, operation, value);
  fflush(stdout);
}

/* The median of batches of `operation`, which gets a number that counts up. */
static double cost(void (*operation)(int number), int batch) {
  double batches[BATCHES];
  int number = 0;
  for (int i = 0; i < batch; ++i) operation(number++);
  for (int i = 0; i < BATCHES; ++i) {
    const double begin = cpu_ns();
    for (int k = 0; k < batch; ++k) operation(number++);
    batches[i] = (cpu_ns() - begin) / batch;
  }
  qsort(batches, BATCHES, sizeof batches[0], compare);
  return batches[BATCHES / 2];
}

/* 1, 10, 100 ... `most`; or powers of two. */
static int next_count(int count, int most, int factor) {
  if (count == most) return most + 1;
  return count * factor > most ? most : count * factor;
}

/* --- uDAPL */

static void open_with_queue(const char* name) {
  ia = open_ia(name);
  completions = make_evd(&ia, QUEUE, DAT_EVD_DTO_FLAG);
}

static struct region make_target(void* memory) {
  return make_region(&ia, memory, kRegionSize, 8);
}

static struct end small_end(DAT_EVD_HANDLE connect) {
  return make_end(&ia, completions, completions, connect, 4096, 4);
}

struct meeting {
  struct listener listener;
  DAT_EVD_HANDLE connects[2];
};

static struct meeting meet_here(void) {
  struct meeting made = {.listener = listen_here(&ia)};
  for (int i = 0; i < 2; ++i) made.connects[i] = make_evd(&ia, QUEUE, DAT_EVD_CONNECTION_FLAG);
  return made;
}

struct pair {
  struct end ends[2];
};

static struct pair connect_pair(const struct meeting* here) {
  const struct pair made = {{small_end(here->connects[0]), small_end(here->connects[1])}};
  connect_ends(&ia, &here->listener, &made.ends[0], &made.ends[1]);
  return made;
}

static void take_completion(void) {
  DAT_EVENT event;
  DAT_RETURN status;
  do {
    status = dat_evd_dequeue(completions, &event);
  } while (DAT_GET_TYPE(status) == DAT_QUEUE_EMPTY);
  must(status, "dat_evd_dequeue");
  check(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS, "a request failed");
}

static void write_to(const struct end* end, const struct region* from, const struct region* to) {
  const DAT_DTO_COOKIE cookie = {.as_64 = 1};
  DAT_LMR_TRIPLET local = from->local;
  DAT_RMR_TRIPLET remote = to->remote;
  must(dat_ep_post_rdma_write(end->ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG),
       "dat_ep_post_rdma_write");
  take_completion();
}

/* --- The series */

static struct region* regions;
static struct pair* pairs;
static int present;
static unsigned char source_bytes[kRegionSize];
static unsigned char* sink_bytes;
static struct region source;

static void write_to_a_region(int number) {
  write_to(&pairs[0].ends[0], &source, &regions[(unsigned)number * 7919U % (unsigned)present]);
}

static void make_and_free_region(int number) {
  struct region made = make_target(sink_bytes + (size_t)(number % kRegions) * kRegionSize);
  must(dat_lmr_free(made.lmr), "dat_lmr_free");
}

static void grow_regions(void) {
  const struct meeting here = meet_here();
  regions = room(kRegions, sizeof *regions);
  pairs = room(1, sizeof *pairs);
  sink_bytes = room(kRegions, kRegionSize);
  memset(sink_bytes, 1, (size_t)kRegions * kRegionSize);
  source = make_target(source_bytes);
  pairs[0] = connect_pair(&here);
  const double before = resident_bytes();
  for (int count = 1; count <= kRegions; count = next_count(count, kRegions, 10)) {
    for (; present < count; ++present) regions[present] = make_target(sink_bytes + (size_t)present * kRegionSize);
    say("regions", count, "create+free", cost(make_and_free_region, BATCH));
    say("regions", count, "write", cost(write_to_a_region, BATCH));
  }
  say("regions", kRegions, "bytes", (resident_bytes() - before) / kRegions);
}

static void write_over_a_pair(int number) {
  const struct pair* pair = &pairs[(unsigned)number % (unsigned)present];
  write_to(&pair->ends[0], &source, &regions[0]);
}

static void grow_endpoints(void) {
  const struct meeting here = meet_here();
  regions = room(1, sizeof *regions);
  sink_bytes = room(1, kRegionSize);
  pairs = room(kEndpoints / 2, sizeof *pairs);
  source = make_target(source_bytes);
  regions[0] = make_target(sink_bytes);
  const double before = resident_bytes();
  for (int count = 2; count <= kEndpoints; count = next_count(count, kEndpoints, 5)) {
    for (; 2 * present < count; ++present) pairs[present] = connect_pair(&here);
    say("endpoints", count, "write", cost(write_over_a_pair, BATCH > present ? BATCH : present));
  }
  say("endpoints", kEndpoints, "bytes", (resident_bytes() - before) / kEndpoints);
}

static DAT_CNO_HANDLE cno;
static DAT_EVD_HANDLE evds[kEvds];

static void wake_by_an_evd(int number) {
  DAT_EVENT event;
  DAT_EVD_HANDLE woken = DAT_HANDLE_NULL;
  memset(&event, 0, sizeof event);
  event.event_number = DAT_SOFTWARE_EVENT;
  must(dat_evd_post_se(evds[(unsigned)number * 31U % (unsigned)present], &event), "dat_evd_post_se");
  must(dat_cno_wait(cno, WAIT_US, &woken), "dat_cno_wait");
  must(dat_evd_dequeue(woken, &event), "dat_evd_dequeue");
}

static void grow_evds(void) {
  const double before = resident_bytes();
  must(dat_cno_create(ia.handle, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
  for (int count = 1; count <= kEvds; count = next_count(count, kEvds, 4)) {
    for (; present < count; ++present)
      must(dat_evd_create(ia.handle, QUEUE, cno, DAT_EVD_SOFTWARE_FLAG, &evds[present]), "dat_evd_create");
    say("evds", count, "wake", cost(wake_by_an_evd, BATCH));
  }
  say("evds", kEvds, "bytes", (resident_bytes() - before) / kEvds);
}

static struct meeting connection_meeting;

static void make_and_end_connection(int number) {
  (void)number;
  const struct pair made = connect_pair(&connection_meeting);
  disconnect_ends(&made.ends[0], &made.ends[1]);
}

static void grow_connections(void) {
  connection_meeting = meet_here();
  int made = 0;
  double before = 0;
  for (int count = 1; count <= kConnections; count = next_count(count, kConnections, 10)) {
    double begin = cpu_ns();
    const int first = made;
    for (; made < count; ++made) make_and_end_connection(made);
    if (count == 1) {
      before = resident_bytes(); /* contains the memory that only the first connection needs */
      begin = cpu_ns();
    }
    if (made > first + 1) say("connections", count, "connect+disconnect", (cpu_ns() - begin) / (made - first));
  }
  say("connections", kConnections, "bytes", (resident_bytes() - before) / kConnections);
}

/* --- Processes */

enum { kExchanges = 2000 };

struct talk {
  struct end end;
  struct region memory;
};

static void receive(const struct talk* talk) {
  const DAT_DTO_COOKIE cookie = {.as_64 = 2};
  DAT_LMR_TRIPLET local = talk->memory.local;
  must(dat_ep_post_recv(talk->end.ep, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

static void transmit(const struct talk* talk) {
  const DAT_DTO_COOKIE cookie = {.as_64 = 3};
  DAT_LMR_TRIPLET local = talk->memory.local;
  must(dat_ep_post_send(talk->end.ep, 1, &local, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
}

/* Waits for the completions with these cookies, asleep: 64 processes have two CPUs. The peer's next message may
 * complete before the last answer does. */
static void await(unsigned wanted) {
  static unsigned there;
  while ((there & wanted) != wanted) {
    DAT_EVENT event;
    DAT_COUNT more;
    must(dat_evd_wait(completions, WAIT_US, 1, &event, &more), "dat_evd_wait");
    const DAT_DTO_COMPLETION_EVENT_DATA* data = &event.event_data.dto_completion_event_data;
    check(data->status == DAT_DTO_SUCCESS, "a request failed");
    there |= 1U << data->user_cookie.as_64;
  }
  there &= ~wanted;
}

static const unsigned kReceived = 1U << 2, kSent = 1U << 3;

/* A child: one with an even number serves. `go` starts the exchanges, `done` gets the figures, and the child ends with
 * `end`, not before the other end of its connection is done. */
static void run_child(const char* name, int number, int ready, int go, int done, int end) {
  struct talk talk;
  DAT_EVD_HANDLE connect;
  char byte = 0;
  const DAT_CONN_QUAL port = PORT_BASE + (unsigned)number / 2U;
  open_with_queue(name);
  sink_bytes = room(1, kRegionSize);
  talk.memory = make_target(sink_bytes);
  connect = make_evd(&ia, QUEUE, DAT_EVD_CONNECTION_FLAG);
  talk.end = small_end(connect);
  receive(&talk);
  if (number % 2 == 0) {
    DAT_PSP_HANDLE psp;
    DAT_EVD_HANDLE requests = make_evd(&ia, QUEUE, DAT_EVD_CR_FLAG);
    must(dat_psp_create(ia.handle, port, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
    check(write(ready, &byte, 1) == 1, "write");
    DAT_EVENT arrival = expect(requests, DAT_CONNECTION_REQUEST_EVENT);
    must(dat_cr_accept(arrival.event_data.cr_arrival_event_data.cr_handle, talk.end.ep, 0, NULL), "dat_cr_accept");
  } else {
    must(dat_ep_connect(talk.end.ep, ia.address, port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
         "dat_ep_connect");
  }
  (void)expect(connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  check(write(ready, &byte, 1) == 1, "write");
  check(read(go, &byte, 1) == 1, "read");
  const double begin = cpu_ns();
  for (int i = 0; i < kExchanges; ++i) {
    if (number % 2 == 1) transmit(&talk);
    await(number % 2 == 1 ? kReceived | kSent : kReceived);
    receive(&talk);
    if (number % 2 == 1) continue;
    transmit(&talk);
    await(kSent);
  }
  const double figures[2] = {cpu_ns() - begin, resident_bytes()};
  check(write(done, figures, sizeof figures) == (ssize_t)sizeof figures, "write");
  check(read(end, &byte, 1) == 0, "read");
  exit(0);
}

static void start_child(const char* name, int number, const int ready[2], const int go[2], const int done[2],
                        const int end[2]) {
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (child != 0) return;
  close(go[1]);
  close(end[1]);
  run_child(name, number, ready[1], go[0], done[1], end[0]);
}

static void await_bytes(int from, int count) {
  char byte;
  for (int i = 0; i < count; ++i) check(read(from, &byte, 1) == 1, "a process has failed");
}

static void let_go(int to, int count) {
  const char byte = 0;
  for (int i = 0; i < count; ++i) check(write(to, &byte, 1) == 1, "write");
}

static void run_processes(const char* name, int count) {
  int ready[2], go[2], done[2], end[2];
  double cpu = 0, memory = 0;
  check(pipe(ready) == 0 && pipe(go) == 0 && pipe(done) == 0 && pipe(end) == 0, "pipe");
  for (int i = 0; i < count; i += 2) {
    start_child(name, i, ready, go, done, end);
    await_bytes(ready[0], 1);
    start_child(name, i + 1, ready, go, done, end);
    await_bytes(ready[0], 2);
  }
  close(ready[1]);
  close(done[1]);
  let_go(go[1], count);
  for (int i = 0; i < count; ++i) {
    double figures[2];
    check(read(done[0], figures, sizeof figures) == (ssize_t)sizeof figures, "a process has failed");
    cpu += figures[0];
    memory += figures[1];
  }
  close(end[1]);
  for (int i = 0; i < count; ++i) {
    int status = 0;
    check(wait(&status) > 0 && status == 0, "a process has failed");
  }
  say("processes", count, "exchange", cpu / ((double)kExchanges * count / 2));
  say("processes", count, "bytes", memory / count);
  close(ready[0]);
  close(go[0]);
  close(go[1]);
  close(done[0]);
  close(end[0]);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kSeries[] = {
      {"regions", grow_regions},
      {"endpoints", grow_endpoints},
      {"evds", grow_evds},
      {"connections", grow_connections},
  };
  if (argc == 3 && strcmp(argv[2], "processes") == 0) {
    for (int count = 2; count <= kProcesses; count = next_count(count, kProcesses, 2)) run_processes(argv[1], count);
    return 0;
  }
  for (size_t i = 0; argc == 3 && i < sizeof kSeries / sizeof kSeries[0]; ++i) {
    if (strcmp(argv[2], kSeries[i].name) != 0) continue;
    open_with_queue(argv[1]);
    kSeries[i].run();
    close_ia(&ia);
    return 0;
  }
  fprintf(stderr, "usage: bench-growth IA regions|endpoints|evds|connections|processes\n");
  return 2;
}
