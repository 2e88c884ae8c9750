/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The allocator's part of libinject, preloaded if no other tool replaces the allocator: it fails our libraries'
 * allocations, and counts their blocks. It is a library of its own because AddressSanitizer and valgrind bring their
 * own allocators.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/softroce/inject/inject.h"

#define EXPORT __attribute__((visibility("default")))

/* The C library's own functions, under the names that it provides for replacements. */
void* __libc_malloc(size_t size);
void* __libc_realloc(void* block, size_t size);
void __libc_free(void* block);

enum { kSlots = 1U << 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* blocks[kSlots]; /* open addressing; kGone marks a removed entry */
static void* const kGone = &blocks;
static size_t taken;

static size_t slot_of(const void* block) {
  return ((uintptr_t)block >> 4) * 2654435761U % kSlots;
}

static void keep(void* block) {
  size_t at = slot_of(block);
  pthread_mutex_lock(&mutex);
  while (blocks[at] && blocks[at] != kGone) at = (at + 1) % kSlots;
  if (!blocks[at] && ++taken > kSlots / 2) { /* the number of entries in use or removed */
    fputs("inject: too many blocks\n", stderr);
    abort();
  }
  blocks[at] = block;
  pthread_mutex_unlock(&mutex);
  inject_change(BLOCK, 1);
}

static bool forget(const void* block) {
  bool found = false;
  if (!block) return false;
  pthread_mutex_lock(&mutex);
  for (size_t at = slot_of(block); blocks[at]; at = (at + 1) % kSlots) {
    if (blocks[at] != block) continue;
    found = true;
    blocks[at] = kGone;
    if (blocks[(at + 1) % kSlots]) break;
    for (; blocks[at] == kGone; at = (at + kSlots - 1) % kSlots) { /* no search continues beyond this entry */
      blocks[at] = NULL;
      --taken;
    }
    break;
  }
  pthread_mutex_unlock(&mutex);
  if (found) inject_change(BLOCK, -1);
  return found;
}

EXPORT void* malloc(size_t size) {
  const int error = inject_hit(CALL_malloc, __builtin_return_address(0));
  void* block = NULL;
  if (error > 0) {
    errno = error;
    return NULL;
  }
  block = __libc_malloc(size);
  if (error == 0 && block) keep(block);
  return block;
}

EXPORT void* realloc(void* block, size_t size) {
  const int error = inject_hit(CALL_realloc, __builtin_return_address(0));
  if (error > 0) {
    errno = error;
    return NULL;
  }
  const bool ours = forget(block);
  void* moved = __libc_realloc(block, size);
  if (moved ? ours || error == 0 : ours && size) keep(moved ? moved : block);
  return moved;
}

EXPORT void free(void* block) {
  forget(block);
  __libc_free(block);
}
