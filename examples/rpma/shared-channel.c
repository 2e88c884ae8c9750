/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Receives complete on their own CQ, so that the server waits for messages without polling for its sends. With a shared
 * completion channel one wait serves both CQs and names the CQ: the client uses that.
 */
#include <string.h>

#include "common.h"

#define MESSAGES 12
#define SIZE 200
#define OUT (REGION_SIZE / 2)

static struct rpma_conn_cfg* new_cfg(bool shared) {
  struct rpma_conn_cfg* cfg = NULL;
  must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
  must(rpma_conn_cfg_set_rcq_size(cfg, 4), "rpma_conn_cfg_set_rcq_size");
  must(rpma_conn_cfg_set_compl_channel(cfg, shared), "rpma_conn_cfg_set_compl_channel");
  return cfg;
}

static void send_filled(struct rpma_conn* conn, struct rpma_mr_local* mr, unsigned char* memory, unsigned int seed) {
  fill(memory + OUT, SIZE, seed);
  must(rpma_send(conn, mr, OUT, SIZE, RPMA_F_COMPLETION_ALWAYS, memory), "rpma_send");
}

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_conn_cfg* cfg = new_cfg(false);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr);
  const struct first_recv recv = {mr, SIZE};
  struct rpma_conn* conn = accept_one(peer, address, port, cfg, recv, NULL);
  struct rpma_cq* rcq = NULL;
  int fd = -1;
  must(rpma_conn_get_rcq(conn, &rcq), "rpma_conn_get_rcq");
  check(rcq != NULL && rcq != cq_of(conn), "the CQ for receives");
  check(rpma_conn_get_compl_fd(conn, &fd) == RPMA_E_NOT_SHARED_CHNL, "a channel that is not shared");
  for (unsigned int i = 0; i < MESSAGES; ++i) {
    const struct ibv_wc wc = complete(rcq, mr);
    check(wc.opcode == IBV_WC_RECV && wc.byte_len == SIZE, "the message's length");
    check_filled(memory, SIZE, i, "the message");
    if (i + 1 < MESSAGES) must(rpma_recv(conn, mr, 0, SIZE, mr), "rpma_recv");
    send_filled(conn, mr, memory, i + 100);
    /* A client that has its last answer disconnects, perhaps before this side learns that the answer arrived. */
    if (i + 1 < MESSAGES) (void)complete(cq_of(conn), memory);
  }
  wait_hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

/* Takes all completions of the CQ that the channel names, until the answer has arrived. */
static void await_answer(struct rpma_conn* conn, struct rpma_mr_local* mr, const unsigned char* memory,
                         unsigned int seed) {
  bool sent = false;
  bool received = false;
  while (!sent || !received) {
    struct rpma_cq* cq = NULL;
    struct ibv_wc wc;
    bool is_rcq = false;
    must(rpma_conn_wait(conn, 0, &cq, &is_rcq), "rpma_conn_wait");
    while (take_completion(cq, &wc)) {
      check(is_rcq == (wc.opcode == IBV_WC_RECV), "a completion on the wrong CQ");
      if (is_rcq) {
        check(wc.wr_id == (uintptr_t)mr && wc.byte_len == SIZE, "the answer's length");
        check_filled(memory, SIZE, seed, "the answer");
        received = true;
      } else {
        sent = true;
      }
    }
  }
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_conn_cfg* cfg = new_cfg(true);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr);
  const struct first_recv recv = {mr, SIZE};
  struct rpma_conn* conn = connect_to(peer, address, port, cfg, recv, NULL);
  check(rpma_cq_wait(cq_of(conn)) == RPMA_E_SHARED_CHANNEL, "a channel that is shared");
  for (unsigned int i = 0; i < MESSAGES; ++i) {
    if (i > 0) must(rpma_recv(conn, mr, 0, SIZE, mr), "rpma_recv");
    send_filled(conn, mr, memory, i);
    await_answer(conn, mr, memory, i + 100);
  }
  hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
