/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The traffic over librpma, ours or the original: this program links librpma.so.0 and runs on either. */
#include <librpma.h>

#include "bench/common/check.h"
#include "bench/instructions/traffic.h"

#define PORT "7600"
#define USAGE (RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

static unsigned char memory[2 * MESSAGE_SIZE] __attribute__((aligned(4096)));
static struct rpma_peer* peer;
static struct rpma_mr_local* mr;
static struct rpma_mr_remote* remote;
static struct rpma_conn *front, *back;
static struct rpma_cq *request_cq, *recv_cq;

static void must(int result, const char* what) {
  if (result != 0) fail(what, rpma_err_2str(result));
}

static void expect_established(struct rpma_conn* conn) {
  enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
  must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
  check(event == RPMA_CONN_ESTABLISHED, rpma_utils_conn_event_2str(event));
}

static void connect_ends(const char* where) {
  struct rpma_conn_cfg* cfg = NULL;
  struct rpma_ep* ep = NULL;
  struct rpma_conn_req* request = NULL;
  must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
  must(rpma_conn_cfg_set_cq_size(cfg, QUEUE_LENGTH), "rpma_conn_cfg_set_cq_size");
  must(rpma_conn_cfg_set_rcq_size(cfg, QUEUE_LENGTH), "rpma_conn_cfg_set_rcq_size");
  must(rpma_conn_cfg_set_sq_size(cfg, QUEUE_LENGTH), "rpma_conn_cfg_set_sq_size");
  must(rpma_conn_cfg_set_rq_size(cfg, QUEUE_LENGTH), "rpma_conn_cfg_set_rq_size");
  must(rpma_ep_listen(peer, where, PORT, &ep), "rpma_ep_listen");
  must(rpma_conn_req_new(peer, where, PORT, cfg, &request), "rpma_conn_req_new");
  must(rpma_conn_req_connect(&request, NULL, &front), "rpma_conn_req_connect");
  must(rpma_ep_next_conn_req(ep, cfg, &request), "rpma_ep_next_conn_req");
  must(rpma_conn_req_connect(&request, NULL, &back), "rpma_conn_req_connect");
  expect_established(front);
  expect_established(back);
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
  must(rpma_conn_get_cq(front, &request_cq), "rpma_conn_get_cq");
  must(rpma_conn_get_rcq(back, &recv_cq), "rpma_conn_get_rcq");
}

void traffic_open(const char* where) {
  struct ibv_context* context = NULL;
  unsigned char descriptor[64];
  size_t size = 0;
  must(rpma_utils_get_ibv_context(where, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context), "rpma_utils_get_ibv_context");
  must(rpma_peer_new(context, &peer), "rpma_peer_new");
  must(rpma_mr_reg(peer, memory, sizeof memory, USAGE, &mr), "rpma_mr_reg");
  must(rpma_mr_get_descriptor_size(mr, &size), "rpma_mr_get_descriptor_size");
  check(size <= sizeof descriptor, "the descriptor is too large");
  must(rpma_mr_get_descriptor(mr, descriptor), "rpma_mr_get_descriptor");
  must(rpma_mr_remote_from_descriptor(descriptor, size, &remote), "rpma_mr_remote_from_descriptor");
  connect_ends(where);
}

void traffic_close(void) {
  must(rpma_conn_delete(&front), "rpma_conn_delete");
  must(rpma_conn_delete(&back), "rpma_conn_delete");
  must(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
  must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

void post_write(uint64_t number) {
  const int result = rpma_write(front, remote, MESSAGE_SIZE, mr, 0, MESSAGE_SIZE, RPMA_F_COMPLETION_ALWAYS,
                                (const void*)(uintptr_t)number);
  if (result) must(result, "rpma_write");
}

void post_send(uint64_t number) {
  const int result = rpma_send(front, mr, 0, MESSAGE_SIZE, RPMA_F_COMPLETION_ALWAYS, (const void*)(uintptr_t)number);
  if (result) must(result, "rpma_send");
}

void post_recv(uint64_t number) {
  const int result = rpma_recv(back, mr, MESSAGE_SIZE, MESSAGE_SIZE, (const void*)(uintptr_t)number);
  if (result) must(result, "rpma_recv");
}

static bool take(struct rpma_cq* cq, uint64_t number) {
  struct ibv_wc completion;
  const int result = rpma_cq_get_wc(cq, 1, &completion, NULL);
  if (result == RPMA_E_NO_COMPLETION) return false;
  if (result || completion.status != IBV_WC_SUCCESS || completion.wr_id != number) {
    check(false, "a completion is not as it should be");
  }
  return true;
}

bool take_request(uint64_t number) {
  return take(request_cq, number);
}

bool take_recv(uint64_t number) {
  return take(recv_cq, number);
}

void wait_recv(uint64_t number) {
  while (!take_recv(number)) must(rpma_cq_wait(recv_cq), "rpma_cq_wait");
}
