/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * resolve [-a] [-d] [-s SOURCE] TIMEOUT ADDRESS...: resolves the addresses by librdmacm, all at once, with a time-out
 * of TIMEOUT milliseconds each. Prints "ADDRESS EVENT STATUS MILLISECONDS" for each, or "ADDRESS refused ERRNO". -a:
 * resolves an address once more with the same id after RDMA_CM_EVENT_ADDR_ERROR. -d: destroys half of the ids in the
 * middle; the others still get their events.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct target {
  const char* name;
  struct addrinfo* address;
  struct rdma_cm_id* id;
  long started;
  bool again;
};

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static struct addrinfo* parse(const char* name) {
  const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
  struct addrinfo* address = NULL;
  if (getaddrinfo(name, "7174", &hints, &address) == 0) return address;
  fprintf(stderr, "%s is no address\n", name);
  exit(2);
}

static bool begin(struct target* target, struct sockaddr* source, int timeout) {
  target->started = now();
  if (rdma_resolve_addr(target->id, source, target->address->ai_addr, timeout) == 0) return true;
  printf("%s refused %s\n", target->name, strerror(errno));
  return false;
}

int main(int argc, char** argv) {
  bool again = false, destroy = false;
  struct sockaddr* source = NULL;
  for (int option; (option = getopt(argc, argv, "ads:")) != -1;) {
    again = again || option == 'a';
    destroy = destroy || option == 'd';
    if (option == 's') {
      source = parse(optarg)->ai_addr;
      ((struct sockaddr_in*)source)->sin_port = 0;
    }
  }
  if (argc - optind < 2) return 2;
  const int timeout = atoi(argv[optind]);
  const int count = argc - optind - 1;
  struct target* targets = calloc((size_t)count, sizeof *targets);
  struct rdma_event_channel* channel = rdma_create_event_channel();
  if (!targets || !channel) {
    perror("rdma_create_event_channel");
    return 1;
  }
  int waiting = 0;
  for (int i = 0; i < count; ++i) {
    struct target* target = &targets[i];
    target->name = argv[optind + 1 + i];
    target->address = parse(target->name);
    if (rdma_create_id(channel, &target->id, target, RDMA_PS_TCP) != 0) {
      perror("rdma_create_id");
      return 1;
    }
    if (begin(target, source, timeout)) ++waiting;
  }
  if (destroy) {
    usleep((useconds_t)timeout * 500);
    for (int i = 0; i < count; i += 2) {
      if (rdma_destroy_id(targets[i].id) != 0) perror("rdma_destroy_id");
      targets[i].id = NULL;
      --waiting;
    }
  }
  while (waiting > 0) {
    struct rdma_cm_event* event = NULL;
    struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
    if (poll(&readable, 1, timeout + 5000) != 1) {
      printf("%d without an event\n", waiting);
      return 1;
    }
    if (rdma_get_cm_event(channel, &event) != 0) {
      perror("rdma_get_cm_event");
      return 1;
    }
    struct target* target = event->id->context;
    const bool failed = event->event == RDMA_CM_EVENT_ADDR_ERROR;
    printf("%s %s %d %ld\n", target->name, rdma_event_str(event->event), event->status, now() - target->started);
    fflush(stdout);
    rdma_ack_cm_event(event);
    if (!failed || !again || target->again || !begin(target, NULL, timeout)) --waiting;
    target->again = true;
  }
  for (int i = 0; i < count; ++i) {
    if (targets[i].id) rdma_destroy_id(targets[i].id);
    freeaddrinfo(targets[i].address);
  }
  rdma_destroy_event_channel(channel);
  free(targets);
  return 0;
}
