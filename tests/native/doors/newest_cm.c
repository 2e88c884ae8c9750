/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * Functions of librdmacm that are newer than the header that this is built with: rdma_resolve_addrinfo(),
 * rdma_query_addrinfo() and rdma_write_cm_event() of rdma-core 60. Runs under dapple-run. The last line has the number
 * of failures.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Of rdma-core 60. */
enum { ADDRINFO_RESOLVED = 16, USER = 18, INTERNAL = 19 };
enum { RESOLVE_BY_SA = 0x10 };

static int (*resolve_addrinfo)(struct rdma_cm_id*, const char*, const char*, const struct rdma_addrinfo*);
static int (*query_addrinfo)(struct rdma_cm_id*, struct rdma_addrinfo**);
static int (*write_cm_event)(struct rdma_cm_id*, enum rdma_cm_event_type, int, uint64_t);

static struct rdma_event_channel* channel;
static struct rdma_cm_id* id;
static int failures;

static void check(int good, const char* what) {
  printf("%s %s\n", good ? "passed" : "FAILED", what);
  failures += !good;
}

/* Takes the next event. Returns its number, or -1; sets its status and its argument. */
static int next_event(int* status, uint64_t* argument) {
  struct pollfd waiting = {channel->fd, POLLIN, 0};
  struct rdma_cm_event* event;

  if (poll(&waiting, 1, 30000) != 1 || rdma_get_cm_event(channel, &event) != 0) return -1;
  const int number = event->id == id ? (int)event->event : -1;
  *status = event->status;
  memcpy(argument, &event->param, sizeof(*argument));
  rdma_ack_cm_event(event);
  return number;
}

static void resolve__of_an_address__is_found(void) {
  struct rdma_addrinfo* found = NULL;
  int status = -1;
  uint64_t argument;

  check(resolve_addrinfo(id, "127.0.0.1", "7174", NULL) == 0, "rdma_resolve_addrinfo");
  check(next_event(&status, &argument) == ADDRINFO_RESOLVED && status == 0, "its event");
  check(query_addrinfo(id, &found) == 0 && found, "rdma_query_addrinfo");
  if (!found) return;
  const struct sockaddr_in* address = (const struct sockaddr_in*)(const void*)found->ai_dst_addr;
  check(address && address->sin_family == AF_INET && address->sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
            address->sin_port == htons(7174),
        "the address");
  check(rdma_resolve_addr(id, NULL, found->ai_dst_addr, 2000) == 0, "rdma_resolve_addr with it");
  check(next_event(&status, &argument) == RDMA_CM_EVENT_ADDR_RESOLVED && status == 0, "the event of this");
  rdma_freeaddrinfo(found);
}

/* The subnet manager's records: RoCE has none, and the kernel refuses. */
static void resolve__by_the_subnet__is_refused(void) {
  struct rdma_addrinfo hints;

  memset(&hints, 0, sizeof(hints));
  hints.ai_flags = RESOLVE_BY_SA;
  /* librdmacm loses the errno. */
  check(resolve_addrinfo(id, NULL, "0x1234", &hints) == -1, "rdma_resolve_addrinfo with RAI_SA");
}

static void write__of_an_event__comes_back(void) {
  const uint64_t sent = 0x0123456789abcdefu;
  uint64_t argument = 0;
  int status = 0;

  check(write_cm_event(id, (enum rdma_cm_event_type)USER, -5, sent) == 0, "rdma_write_cm_event");
  check(next_event(&status, &argument) == USER && status == -5 && argument == sent, "the event with its argument");
  errno = 0;
  check(write_cm_event(id, (enum rdma_cm_event_type)INTERNAL, 0, 0) == -1 && errno == EINVAL,
        "rdma_write_cm_event of another event");
}

int main(void) {
  *(void**)&resolve_addrinfo = dlsym(RTLD_DEFAULT, "rdma_resolve_addrinfo");
  *(void**)&query_addrinfo = dlsym(RTLD_DEFAULT, "rdma_query_addrinfo");
  *(void**)&write_cm_event = dlsym(RTLD_DEFAULT, "rdma_write_cm_event");
  if (!resolve_addrinfo || !query_addrinfo || !write_cm_event) {
    printf("SKIP: librdmacm is older than rdma-core 60\n");
    return 77;
  }
  channel = rdma_create_event_channel();
  if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) {
    printf("FAILED rdma_create_id: %s\n", strerror(errno));
    return 1;
  }
  resolve__of_an_address__is_found();
  resolve__by_the_subnet__is_refused();
  write__of_an_event__comes_back();
  check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
  rdma_destroy_event_channel(channel);
  printf("%d failed\n", failures);
  return failures != 0;
}
