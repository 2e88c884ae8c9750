// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tells the plug-in which memory the program gives back and takes again. From any thread; no call is told while the
// plug-in has registered no memory nearby.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "provider/member/heap.hpp"

namespace dapple::heap {

extern soft::HeapInterest interest;

// False for most blocks, and for null.
inline bool may_matter(const void* block) {
  return reinterpret_cast<uintptr_t>(block) < interest.end.load(std::memory_order_relaxed);
}
// False if no wr_id is an address behind the block's beginning.
inline bool may_have_context(const void* block) {
  return reinterpret_cast<uintptr_t>(block) < interest.contexts_end.load(std::memory_order_relaxed);
}
inline bool may_be_taken_again() {
  return interest.taken.load(std::memory_order_relaxed);
}

// `caller`: the address to which the program's call returns.
// True if the block must not be handed out again soon.
bool tell_freed(const void* block, const void* caller);
void tell_context_freed(const void* block, const void* caller);
// Before realloc(). True if the block, should it move, must not be handed out again soon.
bool tell_moving(const void* block, const void* caller);
// After it has given this memory back.
void tell_moved(const void* memory, size_t size, const void* caller);
void tell_taken(const void* block, const void* caller);
void tell_unmapped(const void* memory, size_t size, const void* caller);
// Before mremap() or mprotect().
void tell_changing(const void* memory, size_t size, const void* caller);
// After madvise() has dropped the contents of pages.
void tell_dropped(const void* memory, size_t size, const void* caller);
// After mprotect().
void tell_remapped(const void* memory, size_t size, const void* caller);
// After a call that may have taken any memory back.
void tell_some_remapped(const void* caller);
// The size of the shared segment that begins there; 0 if there is none, or if it does not matter.
size_t segment_size(const void* memory, const void* caller);
// The call has failed.
void tell_kept(const void* memory, size_t size, const void* caller);

}  // namespace dapple::heap
