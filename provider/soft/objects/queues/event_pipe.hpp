// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Events on a pipe that libibverbs reads: of a completion channel, or of a context's asynchronous events.
//
// libibverbs follows the pointer that it reads, so a destroyed object must leave no event behind. Unread events are
// removed, and the destroy waits until the program has acknowledged the events that it has read.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <memory>

#include "provider/common/mutex.hpp"

namespace dapple::soft {

// Events of one object on one pipe. Guarded by the pipe's lock.
struct EventCount {
  std::atomic<uint32_t> written{0};  // without those that were taken out; changed under the lock of EventPipes
};

// The pipes of asynchronous events of one context, or those of the completion channels of one open file, which its
// contexts share. All events on a pipe go by the same object. Internally locked; the lock is a leaf.
class EventPipes {
 public:
  EventPipes();
  // False without memory; then nothing else may be called.
  bool ready() const { return kept_ != nullptr; }
  // `size` is 8 or 16; the first eight bytes name the object. The pipe grows to 1 MiB: room for 131,072 unread events
  // of 8 bytes. An event is lost if there are more, or if the kernel refuses this user's pipes more memory.
  void write(const int& writer, const void* message, size_t size, EventCount& count);
  // Removes the object's unread events from the pipe.
  void remove(int reader, int writer, size_t size, uint64_t object, EventCount& count);
  // Closes the descriptor and makes it -1; events are lost from then on.
  void close(int& writer);

 private:
  bool grow(int writer);

  Mutex mutex_{LockRank::kEventPipes};
  // Room for all messages of the largest pipe, so that a removal cannot fail.
  size_t kept_bytes_;
  std::unique_ptr<unsigned char[]> kept_;
};

// Waits until the program has acknowledged all events that it has read, as libibverbs counts it.
void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& condition, const uint32_t& acknowledged,
                               const EventCount& count);

}  // namespace dapple::soft
