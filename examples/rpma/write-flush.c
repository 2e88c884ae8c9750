/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The client writes to the server's memory, flushes the write to visibility, and sends a message, after which the
 * server checks the data. The client reads it back as well.
 */
#include "common.h"

#define SIZE 3000 /* not a multiple of anything */
#define AT 96
#define SEED 11
#define USAGE (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  struct rpma_mr_local* message = NULL;
  unsigned char* memory = new_region(peer, USAGE, &mr);
  unsigned char* note = new_region(peer, RPMA_MR_USAGE_RECV, &message);
  const struct first_recv recv = {message, 1};
  struct rpma_conn* conn = NULL;
  struct offer offer;
  make_offer(mr, false, &offer);
  conn = accept_one(peer, address, port, NULL, recv, &offer);
  check(complete(cq_of(conn), message).byte_len == 0, "the message is empty");
  check_filled(memory + AT, SIZE, SEED, "what was written");
  check(memory[AT - 1] == 0 && memory[AT + SIZE] == 0, "what was written beside it");
  wait_hang_up(&conn);
  free_region(note, &message);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  struct rpma_mr_local* copy_mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_WRITE_SRC, &mr);
  unsigned char* copy = new_region(peer, RPMA_MR_USAGE_READ_DST, &copy_mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = connect_to(peer, address, port, NULL, none, NULL);
  struct rpma_cq* cq = cq_of(conn);
  struct rpma_mr_remote* theirs = take_offer(conn);
  int types = 0;
  must(rpma_mr_remote_get_flush_type(theirs, &types), "rpma_mr_remote_get_flush_type");
  check(types == RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, "the flush types");
  fill(memory, SIZE, SEED);
  must(rpma_write(conn, theirs, AT, mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
  must(rpma_flush(conn, theirs, AT, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, mr), "rpma_flush");
  (void)complete(cq, mr);
  /* A flush to persistence is another type, which this region does not offer. */
  check(rpma_flush(conn, theirs, AT, SIZE, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL) == RPMA_E_NOSUPP,
        "a flush to persistence");
  must(rpma_read(conn, copy_mr, 0, theirs, AT, SIZE, RPMA_F_COMPLETION_ALWAYS, copy), "rpma_read");
  (void)complete(cq, copy);
  check_filled(copy, SIZE, SEED, "what was read back");
  must(rpma_send(conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, memory), "rpma_send");
  (void)complete(cq, memory);
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  free_region(copy, &copy_mr);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
