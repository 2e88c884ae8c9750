// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The stacks that the records of a process refer to, each of them once.
#pragma once

#include <cstddef>
#include <set>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// A program posts by few stacks, which stay as long as the process lives. Internally locked; the lock is a leaf.
class KnownStacks {
 public:
  static KnownStacks& get();

  // The stack with these callers and this script; one without callers if kMax others are known.
  KnownStack known(const Stack& stack);

  Mutex& mutex() { return mutex_; }

  static constexpr size_t kMax = 65536;

 private:
  struct Less {
    bool operator()(const Stack& one, const Stack& other) const;
  };

  Mutex mutex_{LockRank::kKnownStacks};
  std::set<Stack, Less> stacks_;
};

}  // namespace dapple::soft::check
