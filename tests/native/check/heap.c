/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * heap CASE: a program whose registration is the whole heap, as that of many communication libraries. Two of its queue
 * pairs are connected to each other.
 *
 *   taken      blocks are freed, taken again by each function of the C library, and written to: no mistake
 *   busy       the same with threads that use the heap, and with children: no mistake
 *   moved      a Read of a block that realloc() has moved
 *   cut        a Read of the part of a block that realloc() has cut off
 *   reused     a Write to a block that is freed, and whose size is taken again
 *   outgrown   the same with a block that realloc() has moved
 *   twice      a block is freed twice
 *   later      the same, and the heap is deregistered in between
 *   unmapped   a Read of a block that was a mapping of its own, where another mapping is now, by the old registration
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/native/sanitizers/pair.h"

enum { kBlock = 20000, kFillers = 20, kFiller = 100000, kMapped = 8 << 20, kPage = 4096, kThreads = 3, kHeld = 256 };

static struct ibv_qp* front;
static struct buffer near;
static atomic_bool ended;

/* Volatile, because the compiler knows these functions and would remove or change calls. */
static void* (*volatile take)(size_t) = malloc;
static void (*volatile give_back)(void*) = free;
static void* (*volatile change)(void*, size_t) = realloc;

static struct ibv_mr* registered(void* bytes, size_t size) {
  struct ibv_mr* mr = ibv_reg_mr(pd, bytes, size, kRights);
  check(mr != NULL, "ibv_reg_mr");
  return mr;
}

static void run(enum ibv_wr_opcode opcode, const struct ibv_mr* mr, char* remote) {
  struct ibv_sge segment = segment_of(&near);
  struct ibv_send_wr request = {.sg_list = &segment, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = (uintptr_t)remote;
  request.wr.rdma.rkey = mr->rkey;
  struct ibv_send_wr* bad = NULL;
  struct ibv_wc completion;
  check(ibv_post_send(front, &request, &bad) == 0, "ibv_post_send");
  while (ibv_poll_cq(cq, 1, &completion) == 0) {
  }
  check(completion.status == IBV_WC_SUCCESS, "a request");
}

static char* begin_of_heap(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long begin = 0;
  check(maps != NULL, "/proc/self/maps");
  while (begin == 0 && fgets(line, sizeof line, maps) != NULL) {
    if (strstr(line, "[heap]") != NULL) begin = strtoul(line, NULL, 16);
  }
  fclose(maps);
  check(begin != 0, "the heap's begin");
  return (char*)begin;
}

/* Registers the whole heap. The fillers are freed before, so that the check does not hold them back, and their memory
 * stays in the heap. */
static struct ibv_mr* register_heap(void) {
  check(mallopt(M_TRIM_THRESHOLD, 1 << 30) == 1, "mallopt");
  void* fillers[kFillers];
  for (int i = 0; i < kFillers; i++) fillers[i] = take(kFiller);
  char* begin = begin_of_heap();
  char* end = sbrk(0);
  for (int i = 0; i < kFillers; i++) give_back(fillers[i]);
  return registered(begin, (size_t)(end - begin));
}

static void use(const struct ibv_mr* heap, char* block, size_t size) {
  check(block >= (char*)heap->addr && block + size <= (char*)heap->addr + heap->length, "a block in the heap");
  run(IBV_WR_RDMA_WRITE, heap, block);
  run(IBV_WR_RDMA_WRITE, heap, block + size - kSize);
}

static void use_and_give_back(const struct ibv_mr* heap, void* block, size_t size) {
  use(heap, block, size);
  give_back(block);
  /* The check holds back so many blocks that are freed while they are registered. */
  void* small[kHeld];
  for (int i = 0; i < kHeld; i++) small[i] = take(1);
  for (int i = 0; i < kHeld; i++) give_back(small[i]);
}

static void take_again(const struct ibv_mr* heap) {
  use_and_give_back(heap, take(kBlock), kBlock);
  use_and_give_back(heap, calloc(10, kBlock / 10), kBlock);
  use_and_give_back(heap, memalign(256, kBlock), kBlock);
  use_and_give_back(heap, aligned_alloc(256, kBlock / 256 * 256), kBlock / 256 * 256);
  use_and_give_back(heap, valloc(kBlock), kBlock);
  use_and_give_back(heap, pvalloc(kBlock), kBlock);
  use_and_give_back(heap, reallocarray(NULL, 10, kBlock / 10), kBlock);
  void* block = NULL;
  check(posix_memalign(&block, 256, kBlock) == 0, "posix_memalign");
  use_and_give_back(heap, block, kBlock);
  char* text = take(kBlock);
  memset(text, 'x', kBlock - 1);
  text[kBlock - 1] = '\0';
  use_and_give_back(heap, strdup(text), kBlock);
  char* grown = take(100);
  for (size_t size = 200; size < kBlock; size *= 2) use(heap, grown = change(grown, size), size);
  use(heap, grown = change(grown, 300), 300);
  check(change(grown, SIZE_MAX / 2) == NULL, "realloc of too much");
  use_and_give_back(heap, grown, 300);
  give_back(text);
}

static void* churn(void* seed) {
  void* blocks[64] = {NULL};
  unsigned state = (unsigned)(uintptr_t)seed;
  while (!atomic_load(&ended)) {
    state = state * 1664525 + 1013904223;
    void** block = &blocks[state >> 26];
    if (*block == NULL) {
      *block = take(1 + (state >> 8) % 5000);
    } else if ((state & 256) != 0) {
      *block = change(*block, 1 + (state >> 9) % 5000);
    } else {
      give_back(*block);
      *block = NULL;
    }
  }
  for (int i = 0; i < 64; i++) give_back(blocks[i]);
  return NULL;
}

static void be_busy(const struct ibv_mr* heap) {
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; i++) check(pthread_create(&threads[i], NULL, churn, (void*)i) == 0, "a thread");
  for (int i = 0; i < 30; i++) {
    use_and_give_back(heap, take(kBlock), kBlock);
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      for (int j = 0; j < 100; j++) give_back(take(kBlock));
      _exit(0);
    }
    int status = 1;
    check(waitpid(child, &status, 0) == child && status == 0, "a child");
  }
  atomic_store(&ended, true);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
}

static void move(const struct ibv_mr* heap) {
  char* block = take(kBlock);
  void* behind = take(kBlock);
  char* moved = change(block, 3 * kBlock);
  check(moved != block, "realloc to another place");
  run(IBV_WR_RDMA_READ, heap, block + kBlock / 2);
  give_back(moved);
  give_back(behind);
}

static void reuse(const struct ibv_mr* heap) {
  char* block = take(kBlock);
  give_back(block);
  char* other = take(kBlock);
  check(other != block, "another block");
  memset(other, 7, kBlock);
  run(IBV_WR_RDMA_WRITE, heap, block);
  check(other[0] == 7, "the other block");
  give_back(other);
}

static void outgrow(const struct ibv_mr* heap) {
  char* block = take(kBlock);
  void* behind = take(kBlock);
  memset(block, 5, kBlock);
  char* moved = change(block, 3 * kBlock);
  check(moved != block && moved[0] == 5 && moved[kBlock - 1] == 5, "realloc to another place");
  char* other = take(kBlock);
  check(other != block, "another block");
  memset(other, 7, kBlock);
  run(IBV_WR_RDMA_WRITE, heap, block);
  check(other[0] == 7, "the other block");
  give_back(other);
  give_back(moved);
  give_back(behind);
}

static void cut(const struct ibv_mr* heap) {
  char* block = take(kBlock);
  check(change(block, kBlock / 4) == block, "realloc in its place");
  run(IBV_WR_RDMA_READ, heap, block + kBlock / 2);
  give_back(block);
}

/* The C library notices this. */
static void free_twice(struct ibv_mr* deregistered) {
  char* block = take(kBlock);
  void* behind = take(kBlock);
  give_back(block);
  if (deregistered != NULL) check(ibv_dereg_mr(deregistered) == 0, "ibv_dereg_mr");
  give_back(block);
  give_back(behind);
}

/* Another thread may map its stack there first: then false. */
static bool map_where_nothing_is(char* first) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  return mmap(first, kMapped, PROT_READ | PROT_WRITE, flags, -1, 0) == first;
}

static void map_elsewhere(void) {
  char* block = NULL;
  struct ibv_mr* mr = NULL;
  for (bool mapped = false; !mapped;) {
    if (mr != NULL) check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    block = take(kMapped);
    mr = registered(block, kMapped);
    give_back(block);
    mapped = map_where_nothing_is((char*)((uintptr_t)block / kPage * kPage));
  }
  run(IBV_WR_RDMA_READ, mr, block + kPage);
  check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
}

int main(int count, char** arguments) {
  const char* which = count == 2 ? arguments[1] : "";
  open_with_queue();
  front = make_queue_pair();
  struct ibv_qp* back = make_queue_pair();
  connect_pair(front, back, kTimeout);
  near = make_buffer();
  memset(near.bytes, 1, kSize);
  struct ibv_mr* heap = register_heap();
  if (strcmp(which, "taken") == 0) take_again(heap);
  if (strcmp(which, "busy") == 0) be_busy(heap);
  if (strcmp(which, "moved") == 0) move(heap);
  if (strcmp(which, "cut") == 0) cut(heap);
  if (strcmp(which, "reused") == 0) reuse(heap);
  if (strcmp(which, "outgrown") == 0) outgrow(heap);
  if (strcmp(which, "twice") == 0) free_twice(NULL);
  if (strcmp(which, "later") == 0) free_twice(heap);
  if (strcmp(which, "unmapped") == 0) map_elsewhere();
  check(ibv_dereg_mr(heap) == 0, "ibv_dereg_mr");
  puts("all went as planned");
  return 0;
}
