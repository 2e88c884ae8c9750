// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// In builds with asserts, a lock knows its rank (lock_rank.hpp) and the thread that holds it. A thread that takes locks
// in a wrong order aborts, even if no other thread takes them at that time.
#pragma once

#include "provider/common/lock_rank.hpp"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#endif

namespace dapple::soft {

#ifdef NDEBUG

// Empty: a lock has it as a [[no_unique_address]] member.
class LockOrder {
 public:
  constexpr explicit LockOrder(LockRank) {}
  void may_take() const {}
  void took() {}
  void lets_go() {}
  static void forks(bool) {}
  bool is_held_here() const { return true; }
};

#else

class LockOrder {
 public:
  constexpr explicit LockOrder(LockRank rank) : rank_(rank) {}
  LockOrder(const LockOrder&) = delete;
  LockOrder& operator=(const LockOrder&) = delete;

  // Before a thread waits for the lock, or tries to get it.
  void may_take() const {
    RankSet wrong = held_ & forbidden_before(rank_);
    if (forks_ && info_of(rank_).kind == LockKind::kFamily) wrong &= ~bit_of(rank_);
    if (wrong != 0) abort_with(wrong);
  }
  // The thread has got it.
  void took() {
    assert(owner_.load(std::memory_order_relaxed) == nullptr);
    owner_.store(&held_, std::memory_order_relaxed);
    held_ |= bit_of(rank_);
  }
  // Right before it lets the lock go.
  void lets_go() {
    assert(is_held_here());
    owner_.store(nullptr, std::memory_order_relaxed);
    held_ &= ~bit_of(rank_);
  }
  bool is_held_here() const { return owner_.load(std::memory_order_relaxed) == &held_; }

  // Around a fork(), this thread holds all locks of a family.
  static void forks(bool does) { forks_ = does; }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] void abort_with(RankSet wrong) const {
    char line[256];
    const LockRank held = last_of(wrong);
    snprintf(line, sizeof line, "dapple: a thread takes %s while it holds %s: see lock_ranks.def\n",
             info_of(rank_).member, info_of(held).member);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, strlen(line));
    abort();
  }

  // The ranks of the locks that this thread holds. Its address is the thread's identity, also after a fork().
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit RankSet held_ = 0;
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit bool forks_ = false;

  const LockRank rank_;
  std::atomic<const RankSet*> owner_{nullptr};
};

#endif

// For a function that needs the lock to be held by its caller.
template <typename Lock>
void assert_held([[maybe_unused]] const Lock& lock) {
#ifndef NDEBUG
  assert(lock.is_held_here());
#endif
}

}  // namespace dapple::soft
