// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs objects that the program has destroyed. Their memory stays, so that no new object gets the address of one.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::tombs {

struct Tomb {
  std::string name;                          // "queue pair 0x11 of dapple0"
  const char* verb;                          // a literal: "ibv_destroy_qp"
  std::vector<check::ReportedStack> places;  // of the end, and of the beginning
};

// Internally locked; the lock is a leaf.
class Tombs {
 public:
  // Lives as long as the process. The first call makes the objects keep their memory.
  static Tombs& get();

  // False: no object has ended yet, so that posts and polls need no search.
  static bool any() { return any_.load(std::memory_order_acquire); }
  // The object has ended, and its memory is kept.
  void add(const void* object, Tomb tomb);
  // Its memory is given back. keep() does this for objects of verbs.
  void remove(const void* object);
  // The object, if it has ended.
  std::optional<Tomb> find(const void* object);
  // Reports that the verb has got this object, if the object has ended. Returns true then.
  bool report_if_ended(const void* object, const char* verb);

  // The last objects that have ended. The memory of older ones is given back, and their use is not recognised.
  static constexpr size_t kMax = 8192;

 private:
  Tombs() = default;
  void keep(void* memory);
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  static void before_fork() { get().mutex_.lock(); }
  static void after_fork() { get().mutex_.unlock(); }

  static inline constinit std::atomic<bool> any_{false};

  Mutex mutex_{LockRank::kTombs};
  std::deque<void*> memory_;  // the oldest first
  std::map<const void*, Tomb> tombs_;
};

}  // namespace dapple::soft::tombs
