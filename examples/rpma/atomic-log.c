/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A log in the server's memory: the client writes each entry, flushes it, and only then updates the number of used
 * bytes, by an atomic write. At any time that number of bytes is valid. The server checks this all the time.
 */
#include <string.h>

#include "common.h"

#define ENTRY 64 /* bytes */
#define ENTRIES 60
#define FIRST 8 /* after the number of bytes used */
/*
 * The region also needs read access: on a device with native flushes the original librpma 1.3.0 otherwise forbids
 * flushes by Read.
 */
#define USAGE (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, USAGE, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = NULL;
  struct offer offer;
  uint64_t used = 0;
  make_offer(mr, false, &offer);
  conn = accept_one(peer, address, port, NULL, none, &offer);
  while (used < ENTRIES * ENTRY) {
    const uint64_t now = __atomic_load_n((const uint64_t*)(void*)memory, __ATOMIC_ACQUIRE);
    check(now >= used && now <= ENTRIES * ENTRY && now % ENTRY == 0, "the number of bytes used");
    for (; used < now; used += ENTRY) check_filled(memory + FIRST + used, ENTRY, (unsigned int)used, "an entry");
  }
  wait_hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_WRITE_SRC, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = connect_to(peer, address, port, NULL, none, NULL);
  struct rpma_mr_remote* theirs = take_offer(conn);
  for (uint64_t used = 0; used < ENTRIES * ENTRY; used += ENTRY) {
    const uint64_t now = used + ENTRY;
    char bytes[8];
    fill(memory + used, ENTRY, (unsigned int)used);
    must(rpma_write(conn, theirs, FIRST + used, mr, used, ENTRY, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
    must(rpma_flush(conn, theirs, FIRST + used, ENTRY, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ON_ERROR, NULL),
         "rpma_flush");
    memcpy(bytes, &now, sizeof bytes);
    must(rpma_atomic_write(conn, theirs, 0, bytes, RPMA_F_COMPLETION_ALWAYS, memory), "rpma_atomic_write");
    memset(bytes, 0, sizeof bytes); /* they were taken */
    (void)complete(cq_of(conn), memory);
  }
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
