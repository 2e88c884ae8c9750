// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/heap/watch.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>

#include <cassert>
#include <type_traits>
#include <utility>

#include "provider/preload/heap/ids.hpp"
#include "provider/preload/heap/next.hpp"
#include "provider/preload/heap/requests.hpp"

namespace dapple::heap {

using soft::HeapWatcher;

constinit soft::HeapInterest interest;

namespace {

// Each is null until the plug-in watches, and if the calls of its kind do not all pass through here.
constinit std::atomic<const HeapWatcher*> of_blocks = nullptr;
constinit std::atomic<const HeapWatcher*> of_mappings = nullptr;
constinit thread_local bool paused = false;

// glibc's mark, in the word before a block, of a mapping that holds nothing else.
constexpr size_t kIsMapped = 2;

bool is_mapped(const void* block) {
  return (static_cast<const size_t*>(block)[-1] & kIsMapped) != 0;
}

using Event = void (*HeapWatcher::*)(const void*, size_t);
using Question = bool (*HeapWatcher::*)(const void*, size_t);

// False if the event is not told.
template <typename Member>
bool tell_anyway(const HeapWatcher& watcher, Member event, const void* memory, size_t size, const void* caller) {
  if (paused || (caller >= watcher.code_begin && caller < watcher.code_end)) return false;
  const int saved = errno;
  paused = true;
  bool answer = true;
  if constexpr (std::is_same_v<Member, Question>) {
    answer = (watcher.*event)(memory, size);
  } else {
    (watcher.*event)(memory, size);
  }
  assert(paused);
  paused = false;
  errno = saved;
  return answer;
}

template <typename Member>
bool tell(const HeapWatcher& watcher, Member event, const void* memory, size_t size, const void* caller) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  if (size == 0 || begin >= interest.end.load(std::memory_order_relaxed) ||
      begin + size <= interest.begin.load(std::memory_order_relaxed)) {
    return false;
  }
  return tell_anyway(watcher, event, memory, size, caller);
}

template <typename Member>
bool tell_of_block(Member event, const void* block, const void* caller) {
  const HeapWatcher* watcher = of_blocks.load(std::memory_order_acquire);
  if (watcher == nullptr || block == nullptr) return false;
  return tell(*watcher, event, block, malloc_usable_size(const_cast<void*>(block)), caller);
}

void tell_of_mapping(Event event, const void* memory, size_t size, const void* caller) {
  if (const HeapWatcher* watcher = of_mappings.load(std::memory_order_acquire)) {
    tell(*watcher, event, memory, size, caller);
  }
}

const void* library_of(const void* function) {
  Dl_info info;
  return dladdr(function, &info) == 0 ? nullptr : info.dli_fbase;
}

// True if the program's calls of this name come here. A program may define the function itself.
bool is_ours(const char* name) {
  static const char here = 0;
  return library_of(dlsym(RTLD_DEFAULT, name)) == library_of(&here);
}

template <typename Function>
bool is_between(const char* name, Next<Function>& next, const void* library) {
  return is_ours(name) && library_of(reinterpret_cast<const void*>(next.get())) == library;
}

// Another allocator may have ways of its own to take a block, such as operator new.
bool sees_all_blocks() {
  const void* libc = library_of(reinterpret_cast<const void*>(gnu_get_libc_version));
  return is_between("malloc", next_malloc, libc) && is_between("free", next_free, libc) &&
         is_between("calloc", next_calloc, libc) && is_between("realloc", next_realloc, libc) &&
         is_between("memalign", next_memalign, libc) && is_between("posix_memalign", next_posix_memalign, libc) &&
         is_between("aligned_alloc", next_aligned_alloc, libc) && is_between("valloc", next_valloc, libc) &&
         is_between("pvalloc", next_pvalloc, libc) &&
         library_of(reinterpret_cast<const void*>(malloc_usable_size)) == libc;
}

bool watch(const HeapWatcher& watcher) {
  const bool sees_blocks = sees_all_blocks(), sees_mappings = is_ours("munmap");
  if (sees_blocks) of_blocks.store(&watcher, std::memory_order_release);
  if (sees_mappings) of_mappings.store(&watcher, std::memory_order_release);
  return sees_blocks && sees_mappings && is_ours("mmap") && is_ours("mremap") && is_ours("mprotect");
}

bool pause(bool value) {
  return std::exchange(paused, value);
}

}  // namespace

bool tell_freed(const void* block, const void* caller) {
  if (of_blocks.load(std::memory_order_acquire) == nullptr || block == nullptr) return false;
  if (is_mapped(block)) {
    tell_of_block(&HeapWatcher::unmapped, block, caller);
    return false;
  }
  return tell_of_block(&HeapWatcher::freed, block, caller);
}

void tell_context_freed(const void* block, const void* caller) {
  const HeapWatcher* watcher = of_blocks.load(std::memory_order_acquire);
  if (watcher == nullptr || block == nullptr) return;
  const size_t size = malloc_usable_size(const_cast<void*>(block));
  if (reinterpret_cast<uintptr_t>(block) + size <= interest.contexts_begin.load(std::memory_order_relaxed)) return;
  tell_anyway(*watcher, &HeapWatcher::context_freed, block, size, caller);
}

bool tell_moving(const void* block, const void* caller) {
  return tell_of_block(&HeapWatcher::moving, block, caller) && !is_mapped(block);
}

void tell_moved(const void* memory, size_t size, const void* caller) {
  if (const HeapWatcher* watcher = of_blocks.load(std::memory_order_acquire)) {
    tell(*watcher, &HeapWatcher::moved, memory, size, caller);
  }
}

void tell_taken(const void* block, const void* caller) {
  tell_of_block(&HeapWatcher::taken, block, caller);
}

void tell_unmapped(const void* memory, size_t size, const void* caller) {
  tell_of_mapping(&HeapWatcher::unmapped, memory, size, caller);
}

void tell_changing(const void* memory, size_t size, const void* caller) {
  tell_of_mapping(&HeapWatcher::changing, memory, size, caller);
}

void tell_dropped(const void* memory, size_t size, const void* caller) {
  tell_of_mapping(&HeapWatcher::dropped, memory, size, caller);
}

void tell_remapped(const void* memory, size_t size, const void* caller) {
  tell_of_mapping(&HeapWatcher::remapped, memory, size, caller);
}

void tell_some_remapped(const void* caller) {
  const HeapWatcher* watcher = of_mappings.load(std::memory_order_acquire);
  if (watcher != nullptr) tell_anyway(*watcher, &HeapWatcher::remapped, nullptr, 0, caller);
}

size_t segment_size(const void* memory, const void* caller) {
  const HeapWatcher* watcher = of_mappings.load(std::memory_order_acquire);
  if (watcher == nullptr || paused || (caller >= watcher->code_begin && caller < watcher->code_end)) return 0;
  const int saved = errno;
  const size_t size = watcher->segment_size(memory);
  errno = saved;
  return size;
}

void tell_kept(const void* memory, size_t size, const void* caller) {
  tell_of_mapping(&HeapWatcher::kept, memory, size, caller);
}

}  // namespace dapple::heap

extern "C" {
[[gnu::visibility("default")]] extern const dapple::soft::Heap dapple_heap;
constinit const dapple::soft::Heap dapple_heap = {dapple::soft::kHeapVersion, &dapple::heap::interest,
                                                  dapple::heap::watch,        dapple::heap::pause,
                                                  dapple::heap::watch_ids,    dapple::heap::ids_left_alone};
}
