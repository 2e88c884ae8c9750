// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The objects that threads use at this moment, so that an object's owner can wait until nobody uses it. Each thread has
// a place where it notes the object, which needs no atomic operation (heavy_barrier.hpp). A thread without a place, or
// that uses an object already, counts itself at the object instead.
#pragma once

#include <atomic>

namespace dapple::soft {

class UsersInProgress {
 public:
  using Place = std::atomic<const void*>;

  // This thread's free place, or null. The thread stores the object there, and then looks after a light_barrier()
  // whether the object is still valid. Afterwards it stores null.
  static Place* free_place() {
    Place* place = place_;
    if (place == nullptr) [[unlikely]]
      place = claim();
    return place != nullptr && place->load(std::memory_order_relaxed) == nullptr ? place : nullptr;
  }
  // The object is invalid for all threads that look from now on. Waits until no place has it.
  static void await_none(const void* object);
  // In a child of fork(), which has one thread.
  static void forget_others();

 private:
  // A place for this thread, or null.
  static Place* claim();
  static void give_back(void* place);

  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit Place* place_ = nullptr;
};

}  // namespace dapple::soft
