/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * inherited ADDRESS: a process that has used librdmacm before it forks, and has freed all of its objects. librdmacm
 * keeps its devices open, so the children use those.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int wrong(const char* what) {
  perror(what);
  return 1;
}

/* Makes a zone and a queue on the device that has the address. */
static int use(const char* address) {
  struct sockaddr_in name;
  struct rdma_cm_id* id = NULL;
  memset(&name, 0, sizeof name);
  name.sin_family = AF_INET;
  if (inet_pton(AF_INET, address, &name.sin_addr) != 1) return wrong("inet_pton");
  struct rdma_event_channel* const channel = rdma_create_event_channel();
  if (!channel) return wrong("rdma_create_event_channel");
  if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) return wrong("rdma_create_id");
  if (rdma_bind_addr(id, (struct sockaddr*)&name) != 0) return wrong("rdma_bind_addr");
  struct ibv_pd* const pd = ibv_alloc_pd(id->verbs);
  if (!pd) return wrong("ibv_alloc_pd");
  struct ibv_cq* const cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
  if (!cq) return wrong("ibv_create_cq");
  if (ibv_destroy_cq(cq) != 0) return wrong("ibv_destroy_cq");
  if (ibv_dealloc_pd(pd) != 0) return wrong("ibv_dealloc_pd");
  if (rdma_destroy_id(id) != 0) return wrong("rdma_destroy_id");
  rdma_destroy_event_channel(channel);
  return 0;
}

/* Runs in a child, and returns the child's exit code. */
static int in_child(const char* address) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(use(address) || use(address));
  return child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (use(argv[1])) return 1;
  for (int i = 0; i < 3; ++i) {
    if (in_child(argv[1])) return 1;
  }
  if (use(argv[1])) return 1;
  puts("children use the devices of their parent, and the parent still can");
  return 0;
}
