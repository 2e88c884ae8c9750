// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions by which a program takes memory and gives it back. Each passes the call on. The plug-in hears of a
// block before it is given back, because another thread may get it at once, and after it is taken.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <atomic>

#include "provider/preload/heap/ids.hpp"
#include "provider/preload/heap/next.hpp"
#include "provider/preload/heap/watch.hpp"

using namespace dapple::heap;

#define DAPPLE_CALLER __builtin_return_address(0)

namespace dapple::heap {

constinit Next<void*(size_t)> next_malloc("malloc");
constinit Next<void(void*)> next_free("free");
constinit Next<void*(size_t, size_t)> next_calloc("calloc");
constinit Next<void*(void*, size_t)> next_realloc("realloc");
constinit Next<void*(size_t, size_t)> next_memalign("memalign");
constinit Next<int(void**, size_t, size_t)> next_posix_memalign("posix_memalign");
constinit Next<void*(size_t, size_t)> next_aligned_alloc("aligned_alloc");
constinit Next<void*(size_t)> next_valloc("valloc");
constinit Next<void*(size_t)> next_pvalloc("pvalloc");
constinit Next<int(void*, size_t)> next_munmap("munmap");
constinit Next<void*(void*, size_t, int, int, int, off_t)> next_mmap("mmap");
constinit Next<void*(void*, size_t, size_t, int, ...)> next_mremap("mremap");
constinit Next<int(void*, size_t, int)> next_madvise("madvise");
constinit Next<int(void*, size_t, int)> next_mprotect("mprotect");
constinit Next<int(const void*)> next_shmdt("shmdt");
constinit Next<int(void*)> next_dlclose("dlclose");

}  // namespace dapple::heap

namespace {

inline void* taken(void* block, const void* caller) {
  if (may_be_taken_again()) [[unlikely]]
    tell_taken(block, caller);
  return block;
}

// The last blocks that were freed while a key had them: a request by this key then finds a freed block, not one that is
// in use again.
constexpr size_t kHeld = 256;
constexpr size_t kMaxHeldSize = 1 << 18;
constinit std::atomic<void*> held[kHeld] = {};
constinit std::atomic<size_t> held_so_far = 0;
// The number of held blocks by a hash of their addresses, so that free() need not search for most blocks.
constexpr size_t kHashes = 4096;
constinit std::atomic<uint16_t> held_with[kHashes] = {};

std::atomic<uint16_t>& num_held_like(const void* block) {
  return held_with[reinterpret_cast<uintptr_t>(block) / 16 % kHashes];
}

// Holds the block back. Returns the oldest block, which is to be freed now.
void* held_instead_of(void* block) {
  if (malloc_usable_size(block) > kMaxHeldSize) return block;
  ++num_held_like(block);
  const size_t place = held_so_far.fetch_add(1, std::memory_order_relaxed) % kHeld;
  void* const oldest = held[place].exchange(block, std::memory_order_acq_rel);
  if (oldest != nullptr) --num_held_like(oldest);
  return oldest;
}

// True if the block was held. It is held no longer.
bool was_held(void* block) {
  if (block == nullptr || num_held_like(block).load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  for (std::atomic<void*>& place : held) {
    void* found = block;
    if (!place.compare_exchange_strong(found, nullptr)) continue;
    --num_held_like(block);
    return true;
  }
  return false;
}

// A larger block with the bytes of this one, which stays. Null if there is no memory.
void* copied_to_larger(void* block, size_t size) {
  void* const another = next_malloc.get()(size);
  if (another == nullptr) return nullptr;
  memcpy(another, block, malloc_usable_size(block));
  return another;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void* malloc(size_t size) noexcept {
  return taken(next_malloc.get()(size), DAPPLE_CALLER);
}

void free(void* block) noexcept {
  if (keeps(block)) [[unlikely]]
    return;
  if (was_held(block)) [[unlikely]] {
    // This is the second time. The C library gets both calls, and ends most programs here.
    next_free.get()(block);
    return next_free.get()(block);
  }
  if (may_have_context(block)) [[unlikely]]
    tell_context_freed(block, DAPPLE_CALLER);
  if (!may_matter(block)) [[likely]]
    return next_free.get()(block);
  if (tell_freed(block, DAPPLE_CALLER)) block = held_instead_of(block);
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const size_t size = malloc_usable_size(block);
  next_free.get()(block);
  tell_remapped(reinterpret_cast<const void*>(begin), size, DAPPLE_CALLER);
}

void* calloc(size_t count, size_t size) noexcept {
  return taken(next_calloc.get()(count, size), DAPPLE_CALLER);
}

// The block may stay, move, or be given back in part. A block that a key has moves if it gets larger, and is held back.
void* realloc(void* block, size_t size) noexcept {
  if (was_held(block)) [[unlikely]] {
    next_free.get()(block);
    return next_realloc.get()(block, size);
  }
  const bool matters = block != nullptr && may_matter(block);
  const size_t old_size = matters ? malloc_usable_size(block) : 0;
  bool holds = false;
  if (matters) [[unlikely]]
    holds = tell_moving(block, DAPPLE_CALLER) && size > old_size && old_size <= kMaxHeldSize;
  const auto begin = reinterpret_cast<uintptr_t>(block);
  void* moved = holds ? copied_to_larger(block, size) : next_realloc.get()(block, size);
  if (moved == nullptr && size != 0) return taken(reinterpret_cast<void*>(begin), DAPPLE_CALLER), nullptr;
  taken(moved, DAPPLE_CALLER);
  if (matters) [[unlikely]] {
    const size_t kept = reinterpret_cast<uintptr_t>(moved) == begin ? malloc_usable_size(moved) : 0;
    if (holds) next_free.get()(held_instead_of(reinterpret_cast<void*>(begin)));
    if (kept < old_size) tell_moved(reinterpret_cast<const void*>(begin + kept), old_size - kept, DAPPLE_CALLER);
  }
  return moved;
}

void* memalign(size_t alignment, size_t size) noexcept {
  return taken(next_memalign.get()(alignment, size), DAPPLE_CALLER);
}

int posix_memalign(void** block, size_t alignment, size_t size) noexcept {
  const int error = next_posix_memalign.get()(block, alignment, size);
  if (error == 0) taken(*block, DAPPLE_CALLER);
  return error;
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return taken(next_aligned_alloc.get()(alignment, size), DAPPLE_CALLER);
}

void* valloc(size_t size) noexcept {
  return taken(next_valloc.get()(size), DAPPLE_CALLER);
}

void* pvalloc(size_t size) noexcept {
  return taken(next_pvalloc.get()(size), DAPPLE_CALLER);
}

int munmap(void* memory, size_t size) noexcept {
  if (!may_matter(memory)) [[likely]]
    return next_munmap.get()(memory, size);
  tell_unmapped(memory, size, DAPPLE_CALLER);
  const int result = next_munmap.get()(memory, size);
  if (result != 0) {
    tell_kept(memory, size, DAPPLE_CALLER);
  } else {
    tell_remapped(memory, size, DAPPLE_CALLER);
  }
  return result;
}

// With MAP_FIXED the mapping takes the place of another.
void* mmap(void* memory, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if ((flags & MAP_FIXED) == 0 || !may_matter(memory)) [[likely]]
    return next_mmap.get()(memory, size, protection, flags, fd, offset);
  tell_unmapped(memory, size, DAPPLE_CALLER);
  void* result = next_mmap.get()(memory, size, protection, flags, fd, offset);
  if (result == MAP_FAILED) {
    tell_kept(memory, size, DAPPLE_CALLER);
  } else {
    tell_remapped(memory, size, DAPPLE_CALLER);
  }
  return result;
}

void* mmap64(void* memory, size_t size, int protection, int flags, int fd, off64_t offset) noexcept
    __attribute__((alias("mmap")));

// The mapping may stay, move, or lose its end. A new place comes with MREMAP_FIXED alone.
void* mremap(void* memory, size_t old_size, size_t size, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* place = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (may_matter(memory)) tell_changing(memory, old_size, DAPPLE_CALLER);
  void* result = next_mremap.get()(memory, old_size, size, flags, place);
  if (result == MAP_FAILED || !may_matter(memory)) return result;
  if (result != memory) {
    tell_unmapped(memory, old_size, DAPPLE_CALLER);
  } else if (size < old_size) {
    tell_unmapped(static_cast<char*>(memory) + size, old_size - size, DAPPLE_CALLER);
  }
  return result;
}

int mprotect(void* memory, size_t size, int protection) noexcept {
  if (may_matter(memory)) tell_changing(memory, size, DAPPLE_CALLER);
  const int result = next_mprotect.get()(memory, size, protection);
  if (result == 0 && may_matter(memory)) tell_remapped(memory, size, DAPPLE_CALLER);
  return result;
}

int madvise(void* memory, size_t size, int advice) noexcept {
  const int result = next_madvise.get()(memory, size, advice);
  const bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
  if (result == 0 && drops && may_matter(memory)) tell_dropped(memory, size, DAPPLE_CALLER);
  return result;
}

int shmdt(const void* memory) noexcept {
  const size_t size = may_matter(memory) ? segment_size(memory, DAPPLE_CALLER) : 0;
  if (size == 0) return next_shmdt.get()(memory);
  tell_unmapped(memory, size, DAPPLE_CALLER);
  const int result = next_shmdt.get()(memory);
  if (result != 0) {
    tell_kept(memory, size, DAPPLE_CALLER);
  } else {
    tell_remapped(memory, size, DAPPLE_CALLER);
  }
  return result;
}

// The loader unmaps the library's memory without a call of munmap().
int dlclose(void* library) noexcept {
  const int result = next_dlclose.get()(library);
  tell_some_remapped(DAPPLE_CALLER);
  return result;
}

}  // extern "C"
#pragma GCC visibility pop
