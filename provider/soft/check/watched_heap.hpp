// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>

#include "provider/soft/check/lent/freed_marks.hpp"
#include "provider/soft/check/lent/mapped_memory.hpp"
#include "provider/soft/check/lent/posted_contexts.hpp"

namespace dapple::soft::check {

// From now on marks the memory that the program frees and unmaps. Null if libdapple-heap.so is missing, or if the
// program has a sanitizer, which knows more. `mapped` remembers then, if the heap library sees all changes, and
// `contexts` hears of the blocks that are freed. With AddressSanitizer the check hears of the blocks that are freed,
// and marks none: the sanitizer knows them. Call it once; the marks live as long as the process.
FreedMarks* watch_heap(MappedMemory& mapped, PostedContexts& contexts);

// The program's own allocator has given this memory back, or handed it out. Does nothing without the check, or if the
// heap is not watched.
void mark_free(const void* memory, size_t size);
void mark_used(const void* memory, size_t size);

}  // namespace dapple::soft::check
