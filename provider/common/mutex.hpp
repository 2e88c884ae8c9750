// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <mutex>

#include "provider/common/lock_order.hpp"

namespace dapple::soft {

// std::mutex with a place in the order of locks. Use it with std::lock_guard.
class Mutex {
 public:
  constexpr explicit Mutex(LockRank rank) : order_(rank) {}

  void lock() {
    order_.may_take();
    mutex_.lock();
    order_.took();
  }
  bool try_lock() {
    order_.may_take();
    if (!mutex_.try_lock()) return false;
    order_.took();
    return true;
  }
  void unlock() {
    order_.lets_go();
    mutex_.unlock();
  }
  bool is_held_here() const { return order_.is_held_here(); }

 private:
  std::mutex mutex_;
  [[no_unique_address]] LockOrder order_;
};
#ifdef NDEBUG
static_assert(sizeof(Mutex) == sizeof(std::mutex));
#endif

}  // namespace dapple::soft
