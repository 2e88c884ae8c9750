/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The client writes a greeting to the server's memory, flushes it to persistence, and finds it there when it connects
 * again.
 *
 * The memory here is ordinary. With persistent memory the same calls keep the data through a loss of power, if the
 * server's platform writes to it directly, as the server's configuration declares.
 */
#include "common.h"

#define SIZE 1500
#define AT 40
#define SEED 17
#define USAGE (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, USAGE, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_ep* ep = NULL;
  struct rpma_conn* conn = NULL;
  struct offer offer;
  make_offer(mr, true, &offer);
  must(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
  for (int visit = 0; visit < 2; ++visit) {
    conn = accept_next(ep, NULL, none, &offer);
    wait_hang_up(&conn);
    check_filled(memory + AT, SIZE, SEED, "what was written");
  }
  check(memory[AT - 1] == 0 && memory[AT + SIZE] == 0, "what was written beside it");
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = connect_to(peer, address, port, NULL, none, NULL);
  struct rpma_mr_remote* theirs = take_offer(conn);
  fill(memory, SIZE, SEED);
  must(rpma_write(conn, theirs, AT, mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
  must(rpma_flush(conn, theirs, AT, SIZE, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, mr), "rpma_flush");
  (void)complete(cq_of(conn), mr);
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  fill(memory, SIZE, SEED + 1);
  conn = connect_to(peer, address, port, NULL, none, NULL);
  theirs = take_offer(conn);
  must(rpma_read(conn, mr, 0, theirs, AT, SIZE, RPMA_F_COMPLETION_ALWAYS, memory), "rpma_read");
  (void)complete(cq_of(conn), memory);
  check_filled(memory, SIZE, SEED, "what was read back");
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
