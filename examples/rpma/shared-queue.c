/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A shared receive queue: the server takes the messages of two connections from one queue. A completion on the queue's
 * own CQ names its connection. On a second pair of connections the queue has no CQ, and messages complete on their
 * connections' CQs.
 */
#include <string.h>

#include "common.h"

#define CONNECTIONS 2
#define MESSAGES 6 /* of each connection */
#define SIZE 100
#define SLOTS 16

struct connection {
  struct rpma_conn* conn;
  uint32_t qp_num;
  unsigned int received;
  unsigned int which; /* the first byte of its messages */
};

static unsigned int seed_of(unsigned int which, unsigned int number) {
  return which * 50 + number;
}

/* Takes the message from the slot that the completion names, and posts the slot again. */
static void check_message(struct rpma_srq* srq, struct rpma_mr_local* mr, const unsigned char* memory,
                          struct connection* from, struct ibv_wc wc) {
  const size_t offset = wc.wr_id;
  const unsigned char* message = memory + offset;
  check(wc.opcode == IBV_WC_RECV && wc.byte_len == SIZE && offset < (size_t)SLOTS * SIZE, "the message's length");
  if (from->received == 0) from->which = message[0];
  check(message[0] == from->which, "a message of another connection");
  check_filled(message + 1, SIZE - 1, seed_of(from->which, from->received), "the message");
  ++from->received;
  must(rpma_srq_recv(srq, mr, offset, SIZE, (const void*)offset), "rpma_srq_recv");
}

static void serve_round(struct rpma_peer* peer, struct rpma_ep* ep, uint32_t rcq_size) {
  struct rpma_srq_cfg* srq_cfg = NULL;
  struct rpma_conn_cfg* cfg = NULL;
  struct rpma_srq* srq = NULL;
  struct rpma_cq* srq_cq = NULL;
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_RECV, &mr);
  struct connection connections[CONNECTIONS];
  const struct first_recv none = {NULL, 0};
  unsigned int left = CONNECTIONS * MESSAGES;
  must(rpma_srq_cfg_new(&srq_cfg), "rpma_srq_cfg_new");
  must(rpma_srq_cfg_set_rcq_size(srq_cfg, rcq_size), "rpma_srq_cfg_set_rcq_size");
  must(rpma_srq_new(peer, srq_cfg, &srq), "rpma_srq_new");
  must(rpma_srq_get_rcq(srq, &srq_cq), "rpma_srq_get_rcq");
  check((srq_cq != NULL) == (rcq_size != 0), "the queue's own CQ");
  for (size_t i = 0; i < SLOTS; ++i)
    must(rpma_srq_recv(srq, mr, i * SIZE, SIZE, (const void*)(i * SIZE)), "rpma_srq_recv");
  must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
  must(rpma_conn_cfg_set_srq(cfg, srq), "rpma_conn_cfg_set_srq");
  must(rpma_conn_cfg_set_rcq_size(cfg, 8), "rpma_conn_cfg_set_rcq_size");
  for (size_t i = 0; i < CONNECTIONS; ++i) {
    struct rpma_cq* rcq = NULL;
    memset(&connections[i], 0, sizeof connections[i]);
    connections[i].conn = accept_next(ep, cfg, none, NULL);
    must(rpma_conn_get_qp_num(connections[i].conn, &connections[i].qp_num), "rpma_conn_get_qp_num");
    must(rpma_conn_get_rcq(connections[i].conn, &rcq), "rpma_conn_get_rcq");
    check((rcq == NULL) == (srq_cq != NULL), "the connection's CQ for receives");
  }
  while (left > 0) {
    struct ibv_wc wc;
    for (size_t i = 0; i < CONNECTIONS && left > 0; ++i) {
      struct rpma_cq* cq = srq_cq;
      if (!cq) must(rpma_conn_get_rcq(connections[i].conn, &cq), "rpma_conn_get_rcq");
      if (!take_completion(cq, &wc)) continue;
      for (size_t j = 0; j < CONNECTIONS; ++j) {
        if (connections[j].qp_num == wc.qp_num) check_message(srq, mr, memory, &connections[j], wc);
      }
      --left;
    }
  }
  check(connections[0].received == MESSAGES && connections[1].received == MESSAGES, "the number of messages");
  for (size_t i = 0; i < CONNECTIONS; ++i) wait_hang_up(&connections[i].conn);
  must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
  must(rpma_srq_delete(&srq), "rpma_srq_delete");
  must(rpma_srq_cfg_delete(&srq_cfg), "rpma_srq_cfg_delete");
  free_region(memory, &mr);
}

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_ep* ep = NULL;
  must(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
  serve_round(peer, ep, 32);
  serve_round(peer, ep, 0);
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND, &mr);
  const struct first_recv none = {NULL, 0};
  for (unsigned int round = 0; round < 2; ++round) {
    struct rpma_conn* conns[CONNECTIONS];
    for (size_t i = 0; i < CONNECTIONS; ++i) conns[i] = connect_to(peer, address, port, NULL, none, NULL);
    for (unsigned int number = 0; number < MESSAGES; ++number) {
      for (unsigned int i = 0; i < CONNECTIONS; ++i) {
        memory[0] = (unsigned char)(i + 1);
        fill(memory + 1, SIZE - 1, seed_of(i + 1, number));
        must(rpma_send(conns[i], mr, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, mr), "rpma_send");
        (void)complete(cq_of(conns[i]), mr);
      }
    }
    for (size_t i = 0; i < CONNECTIONS; ++i) hang_up(&conns[i]);
  }
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
