/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Messages go in both directions: the client sends a number and a pattern made from it; the server checks them and
 * answers with the next number.
 */
#include <string.h>

#include "common.h"

#define ROUNDS 20
#define MESSAGE_SIZE 1000
#define OUT (REGION_SIZE / 2) /* where messages to send lie; received ones lie at 0 */

static void send_number(struct rpma_conn* conn, struct rpma_mr_local* mr, unsigned char* memory, unsigned int number) {
  memcpy(memory + OUT, &number, sizeof number);
  fill(memory + OUT + sizeof number, MESSAGE_SIZE - sizeof number, number);
  must(rpma_send(conn, mr, OUT, MESSAGE_SIZE, RPMA_F_COMPLETION_ALWAYS, memory), "rpma_send");
}

static void check_number(const unsigned char* memory, struct ibv_wc wc, unsigned int number) {
  check(wc.opcode == IBV_WC_RECV && wc.byte_len == MESSAGE_SIZE, "the message's length");
  check(memcmp(memory, &number, sizeof number) == 0, "the message's number");
  check_filled(memory + sizeof number, MESSAGE_SIZE - sizeof number, number, "the message");
}

/* Waits for the completions of the send and the receive, in either order. */
static void take_both(struct rpma_cq* cq, struct rpma_mr_local* mr, const unsigned char* memory, unsigned int number) {
  bool sent = false;
  bool received = false;
  while (!sent || !received) {
    struct ibv_wc wc;
    if (!take_completion(cq, &wc)) {
      must(rpma_cq_wait(cq), "rpma_cq_wait");
    } else if (wc.wr_id == (uintptr_t)mr) {
      check_number(memory, wc, number);
      received = true;
    } else {
      check(wc.wr_id == (uintptr_t)memory && wc.opcode == IBV_WC_SEND, "a completion");
      sent = true;
    }
  }
}

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr);
  const struct first_recv recv = {mr, MESSAGE_SIZE};
  struct rpma_conn* conn = accept_one(peer, address, port, NULL, recv, NULL);
  struct rpma_cq* cq = cq_of(conn);
  check_number(memory, complete(cq, mr), 0);
  for (unsigned int i = 1; i < 2 * ROUNDS; i += 2) {
    const bool last = i + 1 == 2 * ROUNDS;
    if (!last) must(rpma_recv(conn, mr, 0, MESSAGE_SIZE, mr), "rpma_recv");
    send_number(conn, mr, memory, i);
    if (!last) take_both(cq, mr, memory, i + 1);
  }
  /* A client that has its last answer disconnects, perhaps before this side learns that the answer arrived. */
  wait_hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr);
  const struct first_recv recv = {mr, MESSAGE_SIZE};
  struct rpma_conn* conn = connect_to(peer, address, port, NULL, recv, NULL);
  for (unsigned int i = 0; i < 2 * ROUNDS; i += 2) {
    if (i > 0) must(rpma_recv(conn, mr, 0, MESSAGE_SIZE, mr), "rpma_recv");
    send_number(conn, mr, memory, i);
    take_both(cq_of(conn), mr, memory, i + 1);
  }
  hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
