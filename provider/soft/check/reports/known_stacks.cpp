// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/known_stacks.hpp"

#include <cassert>
#include <functional>
#include <mutex>

namespace dapple::soft::check {

bool KnownStacks::Less::operator()(const Stack& one, const Stack& other) const {
  if (one.count != other.count) return one.count < other.count;
  if (one.script != other.script) return one.script < other.script;
  for (int i = 0; i < one.count; i++) {
    if (one.callers[i] != other.callers[i]) return std::less<void*>()(one.callers[i], other.callers[i]);
  }
  return false;
}

KnownStacks& KnownStacks::get() {
  // Threads that outlive main() use it.
  static KnownStacks* const stacks = new KnownStacks;
  return *stacks;
}

KnownStack KnownStacks::known(const Stack& stack) {
  assert(stack.count >= 0 && stack.count <= Stack::kMax);
  const std::lock_guard lock(mutex_);
  assert(stacks_.size() <= kMax);
  if (stacks_.size() < kMax) return KnownStack(*stacks_.insert(stack).first);
  const auto found = stacks_.find(stack);
  return found == stacks_.end() ? KnownStack() : KnownStack(*found);
}

}  // namespace dapple::soft::check
