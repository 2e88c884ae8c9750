// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The objects that threads use at this moment, so that an object's owner can wait until nobody uses it. Each thread has
// a hazard pointer where it notes the object, which needs no atomic operation (heavy_barrier.hpp). A thread without
// one, or that uses an object already, counts itself at the object instead.
#pragma once

#include <atomic>

namespace dapple::soft {

class UsersInProgress {
 public:
  using Hazard = std::atomic<const void*>;

  // This thread's free hazard pointer, or null. The thread stores the object there, and then looks after a
  // light_barrier() whether the object is still valid. Afterwards it stores null.
  static Hazard* free_hazard() {
    Hazard* hazard = hazard_;
    if (hazard == nullptr) [[unlikely]]
      hazard = claim();
    return hazard != nullptr && hazard->load(std::memory_order_relaxed) == nullptr ? hazard : nullptr;
  }
  // The object is invalid for all threads that look from now on. Waits until no hazard pointer has it.
  static void await_none(const void* object);
  // In a child of fork(), which has one thread.
  static void forget_others();

 private:
  // A hazard pointer for this thread, or null.
  static Hazard* claim();
  static void give_back(void* hazard);

  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit Hazard* hazard_ = nullptr;
};

}  // namespace dapple::soft
