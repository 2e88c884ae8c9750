/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* 32 bits of immediate data travel with a message, and with a write, which the server notices by them. */
#include <arpa/inet.h>

#include "common.h"

#define SIZE 512
#define SEND_SEED 5
#define WRITE_SEED 6
#define SEND_IMM 0x12345678
#define WRITE_IMM 0x87654321
#define WRITTEN 1024 /* where the client writes; messages arrive at 0 */

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_DST, &mr);
  const struct first_recv recv = {mr, SIZE};
  struct rpma_conn* conn = NULL;
  struct ibv_wc wc;
  struct offer offer;
  make_offer(mr, false, &offer);
  conn = accept_one(peer, address, port, NULL, recv, &offer);
  /* The receive that the write consumes needs no buffer. */
  must(rpma_recv(conn, NULL, 0, 0, memory), "rpma_recv");
  wc = complete(cq_of(conn), mr);
  check(wc.opcode == IBV_WC_RECV && wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == SEND_IMM,
        "the message's bits");
  check_filled(memory, SIZE, SEND_SEED, "the message");
  wc = complete(cq_of(conn), memory);
  check(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == WRITE_IMM,
        "the write's bits");
  check_filled(memory + WRITTEN, SIZE, WRITE_SEED, "what was written");
  wait_hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_WRITE_SRC, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = connect_to(peer, address, port, NULL, none, NULL);
  struct rpma_mr_remote* theirs = take_offer(conn);
  fill(memory, SIZE, SEND_SEED);
  fill(memory + SIZE, SIZE, WRITE_SEED);
  must(rpma_send_with_imm(conn, mr, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, SEND_IMM, memory), "rpma_send_with_imm");
  (void)complete(cq_of(conn), memory);
  must(rpma_write_with_imm(conn, theirs, WRITTEN, mr, SIZE, SIZE, RPMA_F_COMPLETION_ALWAYS, WRITE_IMM, mr),
       "rpma_write_with_imm");
  (void)complete(cq_of(conn), mr);
  check_filled(memory, SIZE, SEND_SEED, "what was sent has changed");
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
