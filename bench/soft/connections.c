/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-soft-connections ADDRESS OPEN SECONDS [PORT]: two processes on ADDRESS. The client opens OPEN connections and
 * prints "open". For each line of its standard input it then makes and ends others for SECONDS, one after the other,
 * each with a queue pair at both ends: resolve, connect, disconnect, destroy. Prints how many of them it made in a
 * second, and how many in all. It ends at the end of its input. It fails if a connection takes a minute, or after 20
 * failed connections; it prints a line for each of them.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kResolveMs = 5000, kBacklog = 256, kPatience = 60, kMaxFailures = 20, kProgress = 100 };

static struct rdma_event_channel* channel;
static struct ibv_cq* cq;
static struct sockaddr_in address;

static void check(int good, const char* call) {
  if (good) return;
  perror(call);
  exit(1);
}

static void make_queue_pair(struct rdma_cm_id* id) {
  if (cq == NULL) cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
  check(cq != NULL, "ibv_create_cq");
  struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
  };
  check(rdma_create_qp(id, NULL, &init) == 0, "rdma_create_qp");
}

static struct rdma_conn_param parameters(void) {
  const struct rdma_conn_param made = {
      .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
  return made;
}

/* The next event, other than of time wait. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id** id) {
  for (;;) {
    struct rdma_cm_event* event;
    check(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    const enum rdma_cm_event_type type = event->event;
    *id = event->id;
    check(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
    if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT) return type;
  }
}

/* Takes the next event of a connection: 1 if it is the wanted one, otherwise 0 after a line. Skips events of others. */
static int got(const struct rdma_cm_id* of, enum rdma_cm_event_type wanted) {
  static int failures;
  struct rdma_cm_id* id;
  enum rdma_cm_event_type type;
  do {
    type = next_event(&id);
  } while (id != of);
  if (type == wanted) return 1;
  fprintf(stderr, "bench-soft-connections: %s in place of %s\n", rdma_event_str(type), rdma_event_str(wanted));
  if (++failures == kMaxFailures) exit(1);
  return 0;
}

static void destroy(struct rdma_cm_id* id) {
  if (id->qp != NULL) rdma_destroy_qp(id);
  check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

static void serve(int ready) {
  struct rdma_cm_id* listener;
  struct rdma_cm_id* id;
  channel = rdma_create_event_channel();
  check(channel != NULL, "rdma_create_event_channel");
  check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  check(rdma_bind_addr(listener, (struct sockaddr*)&address) == 0, "rdma_bind_addr");
  check(rdma_listen(listener, kBacklog) == 0, "rdma_listen");
  check(write(ready, "r", 1) == 1, "write");
  for (;;) {
    struct rdma_conn_param with = parameters();
    switch (next_event(&id)) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        make_queue_pair(id);
        /* This fails if the client has given up. */
        if (rdma_accept(id, &with) != 0) destroy(id);
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(id);
        destroy(id);
        break;
      case RDMA_CM_EVENT_CONNECT_ERROR:
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_REJECTED:
        destroy(id);
        break;
      default:
        break;
    }
  }
}

/* NULL if an event other than the expected one came. */
static struct rdma_cm_id* make_connection(void) {
  struct rdma_cm_id* id;
  struct rdma_conn_param with = parameters();
  alarm(kPatience);
  check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  check(rdma_resolve_addr(id, NULL, (struct sockaddr*)&address, kResolveMs) == 0, "rdma_resolve_addr");
  if (got(id, RDMA_CM_EVENT_ADDR_RESOLVED)) {
    check(rdma_resolve_route(id, kResolveMs) == 0, "rdma_resolve_route");
    if (got(id, RDMA_CM_EVENT_ROUTE_RESOLVED)) {
      make_queue_pair(id);
      check(rdma_connect(id, &with) == 0, "rdma_connect");
      if (got(id, RDMA_CM_EVENT_ESTABLISHED)) return id;
    }
  }
  destroy(id);
  return NULL;
}

static void open_connections(long wanted) {
  for (long made = 0; made < wanted;) {
    if (make_connection() == NULL) continue;
    if (++made % kProgress == 0) fprintf(stderr, "%ld of %ld connections are open\n", made, wanted);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void measure(double seconds) {
  const double begin = now();
  double time = 0;
  long count = 0;
  while ((time = now() - begin) < seconds) {
    struct rdma_cm_id* id = make_connection();
    if (id == NULL) continue;
    check(rdma_disconnect(id) == 0, "rdma_disconnect");
    if (got(id, RDMA_CM_EVENT_DISCONNECTED)) count++;
    destroy(id);
  }
  alarm(0);
  printf("%.1f %ld\n", (double)count / time, count);
  fflush(stdout);
}

static void too_slow(int signal) {
  static const char kLine[] = "bench-soft-connections: no connection within a minute\n";
  (void)signal;
  if (write(STDERR_FILENO, kLine, sizeof kLine - 1) < 0) _exit(2);
  _exit(1);
}

int main(int argc, char** argv) {
  int ready[2];
  char byte;
  if (argc < 4 || argc > 5 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
    fprintf(stderr, "usage: bench-soft-connections ADDRESS OPEN SECONDS [PORT]\n");
    return 2;
  }
  const double seconds = strtod(argv[3], NULL);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)(argc > 4 ? strtol(argv[4], NULL, 10) : 7171));
  check(pipe(ready) == 0, "pipe");
  const pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(ready[1]);
  }
  check(server > 0, "fork");
  close(ready[1]);
  check(read(ready[0], &byte, 1) == 1, "the server");
  channel = rdma_create_event_channel();
  check(channel != NULL, "rdma_create_event_channel");
  signal(SIGALRM, too_slow);
  open_connections(strtol(argv[2], NULL, 10));
  alarm(0);
  puts("open");
  fflush(stdout);
  for (int letter; (letter = getchar()) != EOF;) {
    if (letter == '\n') measure(seconds);
  }
  /* The other connections end with the program. */
  kill(server, SIGKILL);
  waitpid(server, NULL, 0);
  return 0;
}
