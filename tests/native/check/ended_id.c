/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * ended_id NAME: uses an rdma_cm_id after rdma_destroy_id() or rdma_destroy_ep(), for dapple-run --check, or makes and
 * destroys many.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

enum { kMany = 1000 };

static struct rdma_cm_id* make(struct rdma_event_channel* channel) {
  struct rdma_cm_id* id = NULL;
  return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 ? id : NULL;
}

static int is_refused(int result) {
  return result == -1 && errno == EINVAL;
}

int main(int count, char** words) {
  const char* name = count == 2 ? words[1] : "";
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id* id = channel == NULL ? NULL : make(channel);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  /* This opens the device. */
  int is_good = id != NULL && rdma_bind_addr(id, (struct sockaddr*)&address) == 0;
  if (is_good && strncmp(name, "ep-", 3) == 0) {
    rdma_destroy_ep(id);
  } else if (is_good) {
    is_good = rdma_destroy_id(id) == 0;
  }
  if (is_good && strcmp(name, "ep-listen") == 0) is_good = is_refused(rdma_listen(id, 1));
  if (is_good && strcmp(name, "ep-destroy") == 0) {
    errno = 0;
    rdma_destroy_ep(id);
    is_good = errno == EINVAL;
  }
  if (is_good && strcmp(name, "destroy") == 0) is_good = is_refused(rdma_destroy_id(id));
  if (is_good && strcmp(name, "listen") == 0) is_good = is_refused(rdma_listen(id, 1));
  if (is_good && strcmp(name, "disconnect") == 0) is_good = is_refused(rdma_disconnect(id));
  for (int i = 0; i < kMany && is_good && strcmp(name, "many") == 0; i++) {
    id = make(channel);
    is_good = id != NULL;
    if (is_good && i % 2 == 0) {
      rdma_destroy_ep(id);
    } else if (is_good) {
      is_good = rdma_destroy_id(id) == 0;
    }
  }
  if (channel != NULL) rdma_destroy_event_channel(channel);
  puts(is_good ? "all went as planned" : "not as planned");
  return is_good ? 0 : 1;
}
