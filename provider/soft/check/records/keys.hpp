// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The keys that a process has registered and deregistered, and from where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

struct Registration {
  uint32_t domain = 0;  // the number of its protection domain
  const void* address = nullptr;
  size_t length = 0;
  Stack registered;
  std::optional<Stack> deregistered;
};

// The end of a memory window's key.
struct EndedWindow {
  const char* how;                  // "which ibv_dealloc_mw() has ended"
  std::optional<ReportedStack> by;  // the call, if the program has made it
};

// Internally locked; the lock is a leaf. `device` is the table of the keys (MemoryTable).
class Keys {
 public:
  void add(const void* device, uint32_t key, const Registration& registration);
  // Call it before the key is deregistered, so that no access finds an invalid key without a record of its end.
  void remove(const void* device, uint32_t key);
  // The key was not deregistered after all.
  void restore(const void* device, uint32_t key);
  // A copy; none if the process never had the key, or deregistered it long ago.
  std::optional<Registration> find(const void* device, uint32_t key);

  // The key of a memory window has ended. A later window or region may have the same key again.
  void end_window(const void* device, uint32_t key, const EndedWindow& end);
  std::optional<EndedWindow> ended_window(const void* device, uint32_t key);

  Mutex& mutex() { return mutex_; }

 private:
  using Key = std::pair<const void*, uint32_t>;
  static constexpr size_t kMaxDeregistered = 65536;
  static constexpr size_t kMaxEndedWindows = 65536;

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  Mutex mutex_{LockRank::kKeys};
  std::map<Key, Registration> registrations_;
  std::deque<Key> deregistered_;  // in order; a key may be registered again meanwhile
  std::map<Key, EndedWindow> ended_windows_;
  std::deque<Key> order_of_windows_;  // each key of ended_windows_ once, the oldest first
};

}  // namespace dapple::soft::check
