/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * rpma-cancel ADDRESS: cancels a thread in each call that waits; the same call must then get the event that comes
 * later, and everything can be deleted. It runs on the original librpma as well.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "examples/rpma/common.h"

#define PORT "7790"

static struct rpma_ep* ep;
static struct rpma_conn_req* request;
static struct rpma_conn* near_end; /* one channel for all its completions */
static struct rpma_conn* far_end;

struct wait {
  const char* name;
  int (*call)(void);
  pthread_t thread;
  pid_t id;   /* of the thread, when it runs */
  int result; /* of the call */
};

static int next_request(void) {
  return rpma_ep_next_conn_req(ep, NULL, &request);
}

static int next_event(struct rpma_conn* conn) {
  enum rpma_conn_event event;
  const int result = rpma_conn_next_event(conn, &event);
  check(result || event == RPMA_CONN_CLOSED, "the event is not RPMA_CONN_CLOSED");
  return result;
}
static int next_near_event(void) {
  return next_event(near_end);
}
static int next_far_event(void) {
  return next_event(far_end);
}

static int wait_near(void) {
  struct rpma_cq* cq = NULL;
  return rpma_conn_wait(near_end, 0, &cq, NULL);
}
static int wait_far(void) {
  return rpma_cq_wait(cq_of(far_end));
}

static void* run(void* argument) {
  struct wait* wait = argument;
  __atomic_store_n(&wait->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
  wait->result = wait->call();
  return NULL;
}

/* Returns when the thread sleeps in the call, or has done so. */
static void begin(struct wait* wait) {
  char path[64];
  char state = 'R';
  pid_t id;
  wait->id = 0;
  wait->result = 1;
  must(pthread_create(&wait->thread, NULL, run, wait), "pthread_create");
  while (!(id = __atomic_load_n(&wait->id, __ATOMIC_ACQUIRE))) usleep(1000);
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
  for (int tries = 0; state != 'S' && tries < 30000; ++tries) {
    FILE* file = fopen(path, "r");
    if (!file) break;
    check(fscanf(file, "%*d %*s %c", &state) == 1, "a thread has no state");
    fclose(file);
    usleep(1000);
  }
}

static void cancel(struct wait* wait) {
  void* end = NULL;
  begin(wait);
  must(pthread_cancel(wait->thread), "pthread_cancel");
  must(pthread_join(wait->thread, &end), "pthread_join");
  printf("cancelled in %s\n", wait->name);
  check(end == PTHREAD_CANCELED, "the thread came back from it");
}

static void end(struct wait* wait) {
  void* nothing = &ep;
  must(pthread_join(wait->thread, &nothing), "pthread_join");
  check(!nothing, "a thread that nobody cancelled did not come back");
  must(wait->result, wait->name);
}

static int open_descriptors(void) {
  int found = 0;
  for (int fd = 0; fd < 256; ++fd) found += fcntl(fd, F_GETFD) != -1;
  return found;
}

static struct rpma_conn* connect_near(struct rpma_peer* peer, const char* address) {
  struct rpma_conn_cfg* cfg = NULL;
  struct rpma_conn_req* mine = NULL;
  struct rpma_conn* conn = NULL;
  must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
  must(rpma_conn_cfg_set_compl_channel(cfg, true), "rpma_conn_cfg_set_compl_channel");
  must(rpma_conn_req_new(peer, address, PORT, cfg, &mine), "rpma_conn_req_new");
  must(rpma_conn_req_connect(&mine, NULL, &conn), "rpma_conn_req_connect");
  must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
  return conn;
}

int main(int argc, char** argv) {
  struct wait for_request = {.name = "rpma_ep_next_conn_req", .call = next_request};
  struct wait near_completion = {.name = "rpma_conn_wait", .call = wait_near};
  struct wait far_completion = {.name = "rpma_cq_wait", .call = wait_far};
  struct wait near_event = {.name = "rpma_conn_next_event", .call = next_near_event};
  struct wait far_event = {.name = "rpma_conn_next_event", .call = next_far_event};
  struct rpma_mr_local* mr = NULL;
  struct rpma_cq* cq = NULL;
  struct ibv_wc wc;
  setvbuf(stdout, NULL, _IOLBF, 0);
  check(argc == 2, "usage: rpma-cancel ADDRESS");
  struct rpma_peer* peer = local_peer(argv[1]);
  /* librdmacm keeps its devices open. */
  const int descriptors = open_descriptors();
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr);

  must(rpma_ep_listen(peer, argv[1], PORT, &ep), "rpma_ep_listen");
  cancel(&for_request);
  begin(&for_request);
  near_end = connect_near(peer, argv[1]);
  end(&for_request);
  must(rpma_conn_req_recv(request, mr, 0, 8, NULL), "rpma_conn_req_recv");
  must(rpma_conn_req_connect(&request, NULL, &far_end), "rpma_conn_req_connect");
  expect_event(near_end, RPMA_CONN_ESTABLISHED);
  expect_event(far_end, RPMA_CONN_ESTABLISHED);

  cancel(&near_completion);
  cancel(&far_completion);
  begin(&near_completion);
  begin(&far_completion);
  must(rpma_send(near_end, mr, 8, 8, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
  end(&near_completion);
  end(&far_completion);
  must(rpma_conn_get_cq(near_end, &cq), "rpma_conn_get_cq");
  check(take_completion(cq, &wc) && wc.status == IBV_WC_SUCCESS, "nothing was sent");
  check(take_completion(cq_of(far_end), &wc) && wc.status == IBV_WC_SUCCESS, "nothing came");

  cancel(&near_event);
  cancel(&far_event);
  begin(&near_event);
  begin(&far_event);
  must(rpma_conn_disconnect(near_end), "rpma_conn_disconnect");
  end(&far_event);
  must(rpma_conn_disconnect(far_end), "rpma_conn_disconnect");
  end(&near_event);
  must(rpma_conn_delete(&near_end), "rpma_conn_delete");
  must(rpma_conn_delete(&far_end), "rpma_conn_delete");
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
  check(open_descriptors() == descriptors, "a descriptor is left open");
  puts("every wait can be cancelled");
  return 0;
}
