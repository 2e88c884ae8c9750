// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The services of libdapple-heap.so for the plug-in, which finds it by dlsym(): the two are separate files in one
// process. Only dapple-run --check loads it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace dapple::soft {

inline constexpr uint32_t kHeapVersion = 7;
inline constexpr char kHeapSymbol[] = "dapple_heap";

// The thread that calls malloc() or a similar function calls these. Their own use of the heap calls none of them.
struct HeapWatcher {
  // The plug-in's code. Its own allocations are not reported.
  const void* code_begin;
  const void* code_end;
  // Before malloc's memory is given back. True: hand the block out again as late as possible, because a key has it.
  bool (*freed)(const void* block, size_t size);
  // Before malloc's memory is given back, which may have what a wr_id points to.
  void (*context_freed)(const void* block, size_t size);
  // Before realloc(): the memory may be given back, whole or in part. True: as above.
  bool (*moving)(const void* block, size_t size);
  // After realloc(): this memory, which was all or a part of such a block, has been given back. The same thread has
  // called moving() before.
  void (*moved)(const void* memory, size_t size);
  // After malloc() has handed the memory out again.
  void (*taken)(const void* block, size_t size);
  // Before the system takes the memory back, by munmap(), free() or a new mapping in its place, or after mremap() has
  // moved it.
  void (*unmapped)(const void* memory, size_t size);
  // Before mremap() moves the mapping, or mprotect() changes its rights.
  void (*changing)(const void* memory, size_t size);
  // After madvise() has dropped the contents of pages.
  void (*dropped)(const void* memory, size_t size);
  // After the system has taken memory back, has put another mapping in its place, or has changed its rights. Size 0:
  // nobody knows which memory it was.
  void (*remapped)(const void* memory, size_t size);
  // After the system has refused to take it.
  void (*kept)(const void* memory, size_t size);
  // The size of the shared segment (shmat(2)) that begins at the address; 0: there is none.
  size_t (*segment_size)(const void* memory);
};

// The calls that the watcher gets. The plug-in writes it; each call of malloc() or free() reads it, without a lock.
struct HeapInterest {
  // The bounds of the memory that matters; empty at first.
  std::atomic<uintptr_t> begin{UINTPTR_MAX};
  std::atomic<uintptr_t> end{0};
  // The bounds of the addresses in wr_id; empty at first.
  std::atomic<uintptr_t> contexts_begin{UINTPTR_MAX};
  std::atomic<uintptr_t> contexts_end{0};
  // True if HeapWatcher::taken is wanted.
  std::atomic<bool> taken{false};
};

// The thread that calls a function of librdmacm calls these. The objects are ids, event channels and events.
struct IdWatcher {
  // The function, a literal, has ended the object, whose memory stays for a while.
  void (*ended)(const void* object, const char* function);
  // Before the memory is given back.
  void (*given_back)(const void* object);
  // True after a report: the function has got an object that has ended.
  bool (*has_ended)(const void* object, const char* function);
  // The instruction at this place, or a call of it, has used an event that has ended. In a handler of SIGSEGV.
  void (*touched)(const void* event, uintptr_t place);
  // The program has got the id with a request for a connection.
  void (*requested)(const void* id);
  // ibv_destroy_comp_channel() fails with EBUSY.
  void (*channel_is_busy)(const void* channel);
};

struct Heap {
  uint32_t version;
  HeapInterest* interest;
  // Call it once; the watcher stays. Blocks are reported only if they are the C library's and all of the program's
  // calls pass through this library: otherwise it could see that a block is freed and not that it is taken again.
  // True if the watcher hears of all memory that the program gives back by public functions of the C library.
  bool (*watch)(const HeapWatcher& watcher);
  // True: this thread's calls are not reported until pause(false). Returns the value of before.
  bool (*pause)(bool paused);
  // Call it once; the watcher stays.
  void (*watch_ids)(const IdWatcher& watcher);
  // The ids of requests whose connections had ended before a later request of their listener came, and which the
  // program has not destroyed. Returns their number, and writes at most `most` of them.
  size_t (*ids_left_alone)(const void** ids, size_t most);
};

}  // namespace dapple::soft
