/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The client reads the server's memory, and sends the data back, so that the server can check it, too. */
#include "common.h"

#define SIZE 2048
#define SEED 3
#define BACK SIZE /* where the server receives */

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  struct rpma_mr_local* back = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_READ_SRC, &mr);
  struct rpma_conn* conn = NULL;
  struct first_recv recv = {NULL, SIZE};
  struct offer offer;
  must(rpma_mr_reg(peer, memory + BACK, SIZE, RPMA_MR_USAGE_RECV, &back), "rpma_mr_reg");
  recv.mr = back;
  fill(memory, SIZE, SEED);
  make_offer(mr, false, &offer);
  conn = accept_one(peer, address, port, NULL, recv, &offer);
  check(complete(cq_of(conn), back).byte_len == SIZE, "the length of what came back");
  check_filled(memory + BACK, SIZE, SEED, "what came back");
  check_filled(memory, SIZE, SEED, "what was read has changed");
  wait_hang_up(&conn);
  must(rpma_mr_dereg(&back), "rpma_mr_dereg");
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = connect_to(peer, address, port, NULL, none, NULL);
  struct rpma_mr_remote* theirs = take_offer(conn);
  size_t size = 0;
  must(rpma_mr_remote_get_size(theirs, &size), "rpma_mr_remote_get_size");
  check(size == REGION_SIZE, "the size of the server's region");
  /* Two reads; the first makes a completion only if it fails. */
  must(rpma_read(conn, mr, 0, theirs, 0, SIZE / 2, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_read");
  must(rpma_read(conn, mr, SIZE / 2, theirs, SIZE / 2, SIZE / 2, RPMA_F_COMPLETION_ALWAYS, memory), "rpma_read");
  check(complete(cq_of(conn), memory).opcode == IBV_WC_RDMA_READ, "the completion of a read");
  check_filled(memory, SIZE, SEED, "what was read");
  must(rpma_send(conn, mr, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, mr), "rpma_send");
  (void)complete(cq_of(conn), mr);
  /* A read of nothing shows that the connection works. */
  must(rpma_read(conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, conn), "rpma_read of nothing");
  (void)complete(cq_of(conn), conn);
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
