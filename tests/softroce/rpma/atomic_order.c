/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * rpma-atomic-order ADDRESS COUNT: writes a record, flushes it and atomically writes its number, COUNT times, on a
 * connection of this process to itself, while another thread reads the number all the time. It must never find half of
 * a number, one less than before, or one whose record has not arrived.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/rpma/common.h"

#define OF_ATOMIC_WRITE 9 /* the opcode of a native completion, which old headers lack */
#define PORT "7400"
#define QUEUE 64
#define BATCH 8    /* numbers between two completions; each takes three requests */
#define RECORD 256 /* bytes: words that all hold the record's number */
#define WORDS (RECORD / sizeof(uint64_t))
#define FIRST 64  /* where records begin; the number is at 0 */
#define RECORDS 8 /* each place is written again only this many numbers later */

static const char* address;
static uint64_t count;
static uint64_t looks, found;

/* Both halves are equal; in a torn value they are not. */
static uint64_t word_of(uint64_t number) {
  return number << 32 | (~number & 0xffffffff);
}

static void look(const unsigned char* memory, uint64_t* last) {
  const uint64_t word = __atomic_load_n((const uint64_t*)(const void*)memory, __ATOMIC_ACQUIRE);
  const uint64_t number = word >> 32;
  ++looks;
  if (word == 0) return;
  check(word == word_of(number), "a torn number");
  check(number >= *last && number <= count, "a number that was there before");
  if (number == *last) return;
  ++found;
  *last = number;
  /* A later record may be there, whole or in part, but no earlier one. */
  for (size_t i = 0; i < WORDS; ++i) {
    const uint64_t* record = (const uint64_t*)(const void*)(memory + FIRST + number % RECORDS * RECORD);
    check(__atomic_load_n(&record[i], __ATOMIC_ACQUIRE) >= number, "a number before its record");
  }
}

static void* serve(void* unused) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = NULL;
  struct offer offer;
  uint64_t last = 0;
  (void)unused;
  make_offer(mr, false, &offer);
  conn = accept_one(peer, address, PORT, NULL, none, &offer);
  while (last < count) look(memory, &last);
  wait_hang_up(&conn);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
  return NULL;
}

/* Known before anything is posted: true if the completions will be native. */
static bool will_be_native(const struct rpma_conn* conn, const struct rpma_mr_remote* theirs) {
  const char* reason = NULL;
  bool native = false;
  must(rpma_conn_has_feature(conn, theirs, RPMA_FEATURE_NATIVE_ATOMIC_WRITE, &native, &reason),
       "rpma_conn_has_feature");
  printf("native: %s: %s\n", native ? "yes" : "no", reason);
  return native;
}

static void write_record(struct rpma_conn* conn, struct rpma_mr_remote* theirs, struct rpma_mr_local* mr,
                         unsigned char* memory, uint64_t number, bool native) {
  const size_t at = number % RECORDS * RECORD;
  const uint64_t word = word_of(number);
  const bool last = number % BATCH == 0 || number == count;
  char bytes[8];
  for (size_t i = 0; i < WORDS; ++i) memcpy(memory + at + i * sizeof number, &number, sizeof number);
  memcpy(bytes, &word, sizeof bytes);
  must(rpma_write(conn, theirs, FIRST + at, mr, at, RECORD, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
  must(rpma_flush(conn, theirs, FIRST + at, RECORD, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ON_ERROR, NULL),
       "rpma_flush");
  must(rpma_atomic_write(conn, theirs, 0, bytes, last ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR, mr),
       "rpma_atomic_write");
  if (!last) return;
  const struct ibv_wc wc = complete(cq_of(conn), mr);
  check(((int)wc.opcode == OF_ATOMIC_WRITE) == native, "not done as rpma_conn_has_feature() said");
  if (number == count) printf("the opcode of its completions: %d\n", (int)wc.opcode);
}

static void write_records(void) {
  struct rpma_peer* peer = remote_peer(address);
  struct rpma_mr_local* mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_WRITE_SRC, &mr);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn_cfg* cfg = NULL;
  struct rpma_conn* conn = NULL;
  struct rpma_mr_remote* theirs = NULL;
  must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
  must(rpma_conn_cfg_set_sq_size(cfg, QUEUE), "rpma_conn_cfg_set_sq_size");
  must(rpma_conn_cfg_set_cq_size(cfg, QUEUE), "rpma_conn_cfg_set_cq_size");
  conn = connect_to(peer, address, PORT, cfg, none, NULL);
  theirs = take_offer(conn);
  const bool native = will_be_native(conn, theirs);
  for (uint64_t number = 1; number <= count; ++number) write_record(conn, theirs, mr, memory, number, native);
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  pthread_t server;
  check(argc == 3, "usage: rpma-atomic-order ADDRESS COUNT");
  address = argv[1];
  count = strtoull(argv[2], NULL, 10);
  check(count > 0 && count < 1U << 31, "the count");
  check(pthread_create(&server, NULL, serve, NULL) == 0, "no thread");
  write_records();
  pthread_join(server, NULL);
  printf("%llu atomic writes, %llu looks, %llu numbers seen, none torn or early\n", (unsigned long long)count,
         (unsigned long long)looks, (unsigned long long)found);
  return 0;
}
