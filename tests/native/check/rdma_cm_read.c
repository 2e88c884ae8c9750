// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A client of librdmacm reads from a server that has accepted with responder_resources 0. Both are in this process.
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char memory[2][4096];
static struct rdma_cm_id* listener;
static struct ibv_mr* served;

static struct ibv_qp_init_attr queues(void) {
  return (struct ibv_qp_init_attr){.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                   .qp_type = IBV_QPT_RC,
                                   .sq_sig_all = 1};
}

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static struct rdma_cm_id* endpoint(int passive) {
  struct rdma_addrinfo hints = {.ai_flags = passive ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, *found;
  struct ibv_qp_init_attr attr = queues();
  struct rdma_cm_id* id;
  if (rdma_getaddrinfo("127.0.0.1", "7471", &hints, &found)) fail("rdma_getaddrinfo");
  if (rdma_create_ep(&id, found, NULL, &attr)) fail("rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

static void* serve(__attribute__((unused)) void* unused) {
  struct rdma_conn_param one = {.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7};
  struct rdma_cm_id* id;
  if (rdma_get_request(listener, &id)) fail("rdma_get_request");
  served = ibv_reg_mr(id->pd, memory[0], sizeof memory[0], IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  if (!served || rdma_accept(id, &one)) fail("rdma_accept");
  return id;
}

static struct ibv_wc read_from_server(struct rdma_cm_id* id, struct ibv_mr* own) {
  struct ibv_wc completion = {0};
  int count;
  if (rdma_post_read(id, NULL, memory[1], 64, own, 0, (uintptr_t)memory[0], served->rkey)) fail("rdma_post_read");
  while ((count = ibv_poll_cq(id->send_cq, 1, &completion)) == 0)
    ;
  if (count < 0) fail("ibv_poll_cq");
  return completion;
}

int main(void) {
  struct rdma_conn_param none = {.initiator_depth = 0, .retry_count = 7, .rnr_retry_count = 7};
  pthread_t thread;
  void* accepted;
  listener = endpoint(1);
  if (rdma_listen(listener, 1)) fail("rdma_listen");
  struct rdma_cm_id* client = endpoint(0);
  struct ibv_mr* own = rdma_reg_msgs(client, memory[1], sizeof memory[1]);
  if (!own) fail("rdma_reg_msgs");
  pthread_create(&thread, NULL, serve, NULL);
  if (rdma_connect(client, &none)) fail("rdma_connect");
  pthread_join(thread, &accepted);
  struct ibv_wc completion = read_from_server(client, own);
  printf("the Read ends with: %s\n", ibv_wc_status_str(completion.status));
  rdma_disconnect(client);
  rdma_dereg_mr(own);
  ibv_dereg_mr(served);
  rdma_destroy_ep(client);
  rdma_destroy_ep(accepted);
  rdma_destroy_ep(listener);
  puts("all went as planned");
  return completion.status == IBV_WC_SUCCESS;
}
