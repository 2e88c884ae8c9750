/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The cheapest way for a verbs program: work requests are prepared once, and only their number changes. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "bench/common/check.h"
#include "bench/instructions/traffic.h"

#define RESOLVE_MS 10000

struct end {
  struct rdma_cm_id* id;
  struct ibv_comp_channel* channel;
  struct ibv_cq* recv;
  struct ibv_cq* request;
};

static struct rdma_event_channel* events;
static struct rdma_cm_id* listener;
static struct ibv_pd* pd;
static struct ibv_mr* mr;
static struct end front, back;
static unsigned char memory[2][MESSAGE_SIZE] __attribute__((aligned(4096)));
static struct ibv_sge source, sink;
static struct ibv_send_wr write_wr, send_wr;
static struct ibv_recv_wr recv_wr;

static void must(int result, const char* what) {
  if (result != 0) fail(what, strerror(result > 0 ? result : errno));
}

static void* present(void* pointer, const char* what) {
  must(pointer ? 0 : -1, what);
  return pointer;
}

/* Takes the next event, which must be this one; returns its id. */
static struct rdma_cm_id* expect(enum rdma_cm_event_type type) {
  struct rdma_cm_event* event;
  struct rdma_cm_id* id;
  must(rdma_get_cm_event(events, &event), "rdma_get_cm_event");
  if (event->event != type) fail("another event than the next step needs", rdma_event_str(event->event));
  id = event->id;
  must(rdma_ack_cm_event(event), "rdma_ack_cm_event");
  return id;
}

static void make_end(struct end* end, struct rdma_cm_id* id) {
  struct ibv_qp_init_attr attr;
  end->id = id;
  end->channel = present(ibv_create_comp_channel(id->verbs), "ibv_create_comp_channel");
  end->recv = present(ibv_create_cq(id->verbs, QUEUE_LENGTH, NULL, end->channel, 0), "ibv_create_cq");
  end->request = present(ibv_create_cq(id->verbs, QUEUE_LENGTH, NULL, NULL, 0), "ibv_create_cq");
  memset(&attr, 0, sizeof attr);
  attr.send_cq = end->request;
  attr.recv_cq = end->recv;
  attr.qp_type = IBV_QPT_RC;
  attr.cap.max_send_wr = QUEUE_LENGTH;
  attr.cap.max_recv_wr = QUEUE_LENGTH;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_sge = 1;
  must(rdma_create_qp(id, pd, &attr), "rdma_create_qp");
}

static void free_end(struct end* end) {
  rdma_destroy_qp(end->id);
  must(rdma_destroy_id(end->id), "rdma_destroy_id");
  must(ibv_destroy_cq(end->recv), "ibv_destroy_cq");
  must(ibv_destroy_cq(end->request), "ibv_destroy_cq");
  must(ibv_destroy_comp_channel(end->channel), "ibv_destroy_comp_channel");
}

static void connect_ends(struct sockaddr_in* address) {
  struct rdma_conn_param param;
  struct rdma_cm_id* active;
  memset(&param, 0, sizeof param);
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  param.responder_resources = 1;
  param.initiator_depth = 1;
  must(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
  must(rdma_bind_addr(listener, (struct sockaddr*)address), "rdma_bind_addr");
  must(rdma_listen(listener, 1), "rdma_listen");
  address->sin_port = rdma_get_src_port(listener);
  must(rdma_create_id(events, &active, NULL, RDMA_PS_TCP), "rdma_create_id");
  must(rdma_resolve_addr(active, NULL, (struct sockaddr*)address, RESOLVE_MS), "rdma_resolve_addr");
  (void)expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  must(rdma_resolve_route(active, RESOLVE_MS), "rdma_resolve_route");
  (void)expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  pd = present(ibv_alloc_pd(active->verbs), "ibv_alloc_pd");
  make_end(&front, active);
  must(rdma_connect(active, &param), "rdma_connect");
  make_end(&back, expect(RDMA_CM_EVENT_CONNECT_REQUEST));
  must(rdma_accept(back.id, &param), "rdma_accept");
  (void)expect(RDMA_CM_EVENT_ESTABLISHED);
  (void)expect(RDMA_CM_EVENT_ESTABLISHED);
}

void traffic_open(const char* where) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  check(inet_pton(AF_INET, where, &address.sin_addr) == 1, "that is no IPv4 address");
  events = present(rdma_create_event_channel(), "rdma_create_event_channel");
  connect_ends(&address);
  mr = present(ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "ibv_reg_mr");

  source.addr = (uintptr_t)memory[0];
  sink.addr = (uintptr_t)memory[1];
  source.length = sink.length = MESSAGE_SIZE;
  source.lkey = sink.lkey = mr->lkey;
  send_wr.sg_list = &source;
  send_wr.num_sge = 1;
  send_wr.opcode = IBV_WR_SEND;
  send_wr.send_flags = IBV_SEND_SIGNALED;
  write_wr = send_wr;
  write_wr.opcode = IBV_WR_RDMA_WRITE;
  write_wr.wr.rdma.remote_addr = sink.addr;
  write_wr.wr.rdma.rkey = mr->rkey;
  recv_wr.sg_list = &sink;
  recv_wr.num_sge = 1;
}

void traffic_close(void) {
  free_end(&front);
  free_end(&back);
  must(rdma_destroy_id(listener), "rdma_destroy_id");
  must(ibv_dereg_mr(mr), "ibv_dereg_mr");
  must(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
  rdma_destroy_event_channel(events);
}

static void post_request(struct ibv_send_wr* wr, uint64_t number) {
  struct ibv_send_wr* bad;
  int error;
  wr->wr_id = number;
  error = ibv_post_send(front.id->qp, wr, &bad);
  if (error) must(error, "ibv_post_send");
}

void post_write(uint64_t number) {
  post_request(&write_wr, number);
}

void post_send(uint64_t number) {
  post_request(&send_wr, number);
}

void post_recv(uint64_t number) {
  struct ibv_recv_wr* bad;
  int error;
  recv_wr.wr_id = number;
  error = ibv_post_recv(back.id->qp, &recv_wr, &bad);
  if (error) must(error, "ibv_post_recv");
}

static bool take(struct ibv_cq* cq, uint64_t number) {
  struct ibv_wc completion;
  const int count = ibv_poll_cq(cq, 1, &completion);
  if (count == 0) return false;
  if (count != 1 || completion.status != IBV_WC_SUCCESS || completion.wr_id != number) {
    check(false, "a completion is not as it should be");
  }
  return true;
}

bool take_request(uint64_t number) {
  return take(front.request, number);
}

bool take_recv(uint64_t number) {
  return take(back.recv, number);
}

void wait_recv(uint64_t number) {
  if (take_recv(number)) return;
  for (;;) {
    struct ibv_cq* cq;
    void* context;
    int error = ibv_req_notify_cq(back.recv, 0);
    if (error) must(error, "ibv_req_notify_cq");
    if (take_recv(number)) return;
    error = ibv_get_cq_event(back.channel, &cq, &context);
    if (error) must(error, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    if (take_recv(number)) return;
  }
}
