// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/watched_heap.hpp"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "provider/common/thread_object.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/soft/locks/own_code.hpp"
#include "provider/soft/memory/mappings.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft::check {
namespace {

FreedMarks* marks;

// The most memory that a change of the marks needs. If there is less, the program goes on, and nothing is marked or
// reported any more.
constexpr size_t kReserve = 1 << 16;

bool has_memory() {
  void* reserve = malloc(kReserve);
  free(reserve);
  if (reserve == nullptr) marks->give_up();
  return reserve != nullptr;
}

// The stack is taken without the lock: the unwinder may have locks of its own. `is_sure`: the memory does not stay
// after all.
bool mark(const void* memory, size_t size, FreedMarks::How how, bool is_sure) {
  Checker::get()->mapped.forget();
  if (!marks->is_registered(memory, size) || !has_memory()) return false;
  const Stack stack = Stack::here();
  if (is_sure) report_if_lent(*Checker::get(), memory, size, how, stack);
  marks->mark(memory, size, how, stack);
  return true;
}

bool freed(const void* block, size_t size) {
  return mark(block, size, FreedMarks::How::kFreed, true);
}

// A program may free its contexts, and then destroy the queue pair: only a poll proves the mistake.
void context_freed(const void* block, size_t size) {
  PostedContexts& contexts = Checker::get()->contexts;
  if (contexts.has_context(block, size)) contexts.mark_freed(block, size, Stack::here());
}

// What used the block before realloc(). Afterwards another thread may use the block for requests of its own.
struct Moving {
  std::optional<MemoryUser> user_before;
};

bool moving(const void* block, size_t size) {
  // realloc() may copy the block.
  Checker::get()->withheld.yield(block, size);
  if (Moving* const last = ThreadObject<Moving>::made(); last != nullptr) last->user_before.reset();
  if (!mark(block, size, FreedMarks::How::kFreed, false)) return false;
  if (Moving* const now = ThreadObject<Moving>::get(); now != nullptr)
    now->user_before = user_of(*Checker::get(), block, size, FreedMarks::How::kFreed);
  return true;
}

void moved(const void* memory, size_t size) {
  Checker::get()->mapped.forget();
  if (!has_memory()) return;
  std::optional<MemoryUser> user;
  if (Moving* const now = ThreadObject<Moving>::made(); now != nullptr) user.swap(now->user_before);
  report_if_moved(*Checker::get(), memory, size, user);
}

void taken(const void* block, size_t size) {
  if (has_memory()) marks->take(block, size);
}

// munmap() takes whole pages.
void unmapped(const void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = begin / page * page;
  mark(reinterpret_cast<const void*>(first), (begin + size + page - 1) / page * page - first,
       FreedMarks::How::kUnmapped, true);
}

// True if the mapping at the address is of this process alone. Another process, or a file, keeps the pages of others.
bool is_private(const void* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  Mappings mappings;
  for (Mapping mapping; mappings.next(mapping);) {
    if (mapping.begin <= at && at < mapping.end) return mapping.is_private();
  }
  return false;
}

void dropped(const void* memory, size_t size) {
  if (marks->is_registered(memory, size) && is_private(memory)) mark(memory, size, FreedMarks::How::kDropped, true);
}

// The new mapping gets the old one's rights, and the program's mprotect() may take some of them away.
void changing(const void* memory, size_t size) {
  Checker::get()->withheld.yield(memory, size);
}

// Another thread may have looked at the memory since unmapped(), when it was still there.
void remapped(const void*, size_t) {
  Checker::get()->mapped.forget();
}

void kept(const void* memory, size_t size) {
  if (has_memory()) marks->unmark(memory, size);
}

// The mappings of a segment that is attached in two places may touch each other. The first one has the segment's begin.
size_t segment_size(const void* memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  uintptr_t end = begin;
  unsigned long long inode = 0;
  Mappings mappings;
  for (Mapping mapping; mappings.next(mapping);) {
    if (mapping.begin != end || !mapping.is_shared_segment()) continue;
    const bool is_first = mapping.offset == 0;
    if (is_first != (end == begin) || (!is_first && mapping.inode != inode)) continue;
    inode = mapping.inode;
    end = mapping.end;
  }
  return end != begin && marks->is_registered(memory, end - begin) ? end - begin : 0;
}

HeapInterest sanitizers_interest;

void freed_in_sanitizers_heap(const void* block, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(block);
  if (begin >= sanitizers_interest.end.load(std::memory_order_relaxed) ||
      begin + size <= sanitizers_interest.begin.load(std::memory_order_relaxed)) {
    return;
  }
  if (heap_is_paused() || !marks->is_registered(block, size)) return;
  report_if_lent(*Checker::get(), block, size, FreedMarks::How::kFreed, Stack::here());
}

FreedMarks* watch_sanitizers_heap(Sanitizer& sanitizer) {
  marks = new FreedMarks(sanitizers_interest);
  return sanitizer.watch_heap(freed_in_sanitizers_heap) ? marks : nullptr;
}

}  // namespace

FreedMarks* watch_heap(MappedMemory& mapped, PostedContexts& contexts) {
  if (Sanitizer* sanitizer = Sanitizer::of_program()) return watch_sanitizers_heap(*sanitizer);
  const Heap* heap = loaded_heap();
  if (heap == nullptr) return nullptr;
  static const HeapWatcher watcher = {__ehdr_start, _end,     freed,   context_freed, moving, moved,       taken,
                                      unmapped,     changing, dropped, remapped,      kept,   segment_size};
  marks = new FreedMarks(*heap->interest);
  contexts.watch(*heap->interest);
  if (heap->watch(watcher)) mapped.remember();
  return marks;
}

namespace {

bool marks_memory(size_t size) {
  return Checker::get() != nullptr && marks != nullptr && Sanitizer::of_program() == nullptr && size != 0;
}

}  // namespace

void mark_free(const void* memory, size_t size) {
  if (!marks_memory(size)) return;
  const bool paused = pause_heap(true);
  freed(memory, size);
  pause_heap(paused);
}

void mark_used(const void* memory, size_t size) {
  if (!marks_memory(size)) return;
  const bool paused = pause_heap(true);
  taken(memory, size);
  pause_heap(paused);
}

}  // namespace dapple::soft::check
