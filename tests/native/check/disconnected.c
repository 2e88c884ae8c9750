/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * disconnected NAME: both ends of a connection of librdmacm are in this process. One of them disconnects, and the other
 * end posts a request: after its event, or that of the first end; in another thread than the one that got the event;
 * after rdma_disconnect(); or after the queue pair has been connected again.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPort = 7176 };

struct end {
  struct rdma_event_channel* channel;
  struct rdma_cm_id* id;
  struct ibv_qp_ex* extended;
};
static char bytes[8];

static void must(int is_good, const char* what) {
  if (is_good) return;
  perror(what);
  exit(1);
}

static struct rdma_cm_id* await(struct end* end, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event;
  must(rdma_get_cm_event(end->channel, &event) == 0 && event->event == type, rdma_event_str(type));
  struct rdma_cm_id* id = event->id;
  must(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
  return id;
}

static void make_qp(struct end* end, int extended) {
  struct ibv_qp_init_attr_ex attr = {
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8},
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
      .comp_mask = IBV_QP_INIT_ATTR_PD | (extended ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
      .send_ops_flags = extended ? IBV_QP_EX_WITH_SEND : 0};
  attr.pd = end->id->pd;
  attr.send_cq = attr.recv_cq = ibv_create_cq(end->id->verbs, 8, NULL, NULL, 0);
  must(attr.send_cq != NULL, "ibv_create_cq");
  must(rdma_create_qp_ex(end->id, &attr) == 0, "rdma_create_qp_ex");
  if (extended) end->extended = ibv_qp_to_qp_ex(end->id->qp);
}

static void post(struct end* end) {
  if (end->extended != NULL) {
    ibv_wr_start(end->extended);
    ibv_wr_send(end->extended);
    ibv_wr_set_inline_data(end->extended, bytes, sizeof bytes);
    must(ibv_wr_complete(end->extended) == 0, "ibv_wr_complete");
    return;
  }
  struct ibv_sge segment = {.addr = (uintptr_t)bytes, .length = sizeof bytes};
  struct ibv_send_wr wr = {.sg_list = &segment, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
  struct ibv_send_wr* bad;
  must(ibv_post_send(end->id->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void* post_in_thread(void* end) {
  post(end);
  return NULL;
}

static void await_completion(struct end* end) {
  struct ibv_wc completion;
  while (ibv_poll_cq(end->id->qp->send_cq, 1, &completion) == 0) {
  }
}

/* The ends of a queue pair that is connected to itself, by hand. */
static void connect_again(struct end* end) {
  struct ibv_qp_attr old, attr = {.qp_state = IBV_QPS_RESET};
  struct ibv_qp_init_attr init;
  struct ibv_qp* qp = end->id->qp;
  must(ibv_query_qp(qp, &old, IBV_QP_AV, &init) == 0, "ibv_query_qp");
  must(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RESET");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
  must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR, .ah_attr = old.ah_attr, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num};
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  must(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "RTS");
}

static void connect_ends(struct end* server, struct end* client, int extended) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  struct rdma_conn_param parameters = {.retry_count = 7, .rnr_retry_count = 7};
  struct end listener = {.channel = server->channel};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(rdma_create_id(listener.channel, &listener.id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  must(rdma_bind_addr(listener.id, (struct sockaddr*)&address) == 0 && rdma_listen(listener.id, 1) == 0, "rdma_listen");
  must(rdma_create_id(client->channel, &client->id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  must(rdma_resolve_addr(client->id, NULL, (struct sockaddr*)&address, 2000) == 0, "rdma_resolve_addr");
  await(client, RDMA_CM_EVENT_ADDR_RESOLVED);
  must(rdma_resolve_route(client->id, 2000) == 0, "rdma_resolve_route");
  await(client, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_qp(client, extended);
  must(rdma_connect(client->id, &parameters) == 0, "rdma_connect");
  server->id = await(&listener, RDMA_CM_EVENT_CONNECT_REQUEST);
  make_qp(server, 0);
  must(rdma_accept(server->id, &parameters) == 0, "rdma_accept");
  await(client, RDMA_CM_EVENT_ESTABLISHED);
  await(server, RDMA_CM_EVENT_ESTABLISHED);
  must(rdma_destroy_id(listener.id) == 0, "rdma_destroy_id");
}

static void end_of(struct end* end) {
  struct ibv_cq* cq = end->id->qp->send_cq;
  rdma_destroy_qp(end->id);
  must(ibv_destroy_cq(cq) == 0 && rdma_destroy_id(end->id) == 0, "rdma_destroy_id");
}

int main(int count, char** words) {
  const char* name = count == 2 ? words[1] : "";
  struct end server = {.channel = rdma_create_event_channel()}, client = {.channel = rdma_create_event_channel()};
  connect_ends(&server, &client, strcmp(name, "extended") == 0);
  must(rdma_disconnect(server.id) == 0, "rdma_disconnect");
  await(&server, RDMA_CM_EVENT_DISCONNECTED);
  /* Nobody has told this thread of the client's end. */
  if (strcmp(name, "unread") == 0) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, post_in_thread, &client) == 0, "pthread_create");
    pthread_join(thread, NULL);
  }
  if (strcmp(name, "other-end") == 0) post(&client);
  await(&client, RDMA_CM_EVENT_DISCONNECTED);
  if (strcmp(name, "post") == 0 || strcmp(name, "extended") == 0) {
    post(&client);
    post(&client);
  }
  if (strcmp(name, "thread") == 0) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, post_in_thread, &client) == 0, "pthread_create");
    pthread_join(thread, NULL);
  }
  must(rdma_disconnect(client.id) == 0, "rdma_disconnect");
  if (strcmp(name, "drain") == 0) post(&client);
  if (strcmp(name, "again") == 0) {
    connect_again(&client);
    post(&client);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    must(ibv_modify_qp(client.id->qp, &attr, IBV_QP_STATE) == 0, "ERR");
  }
  await_completion(&client);
  end_of(&client);
  end_of(&server);
  rdma_destroy_event_channel(client.channel);
  rdma_destroy_event_channel(server.channel);
  puts("all went as planned");
  return 0;
}
