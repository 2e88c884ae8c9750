// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA Writes of peers since the program's last completion. Nothing tells their order to the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "provider/common/mutex.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf.
class RecentWrites {
 public:
  struct Write {
    const void* qp;
    uint32_t qpn;
    uintptr_t begin;
    uintptr_t end;
  };

  // A later packet of a Write makes it longer. Returns an earlier Write of another queue pair to some of these bytes.
  std::optional<Write> add(const Write& write);
  // Called for each completion. After it the program may rely on all Writes so far.
  void clear();
  // Before the queue pair is destroyed.
  void forget(const void* qp);

  Mutex& mutex() { return mutex_; }

  // If there are more, the oldest are forgotten.
  static constexpr size_t kMax = 64;

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  Mutex mutex_{LockRank::kRecentWrites};
  std::deque<Write> writes_;
};

}  // namespace dapple::soft::check
