// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

#include "provider/common/stack.hpp"

namespace dapple::soft::check {

using provider::ReportedStack;
using provider::Stack;

// Bytes that differ for two stacks from different lines.
std::string bytes_of(const Stack& stack);

// One of KnownStacks, which stay. Records keep it, since a Stack takes 200 bytes.
class KnownStack {
 public:
  KnownStack() = default;  // without callers
  explicit KnownStack(const Stack& stack) : stack_(&stack) {}

  operator const Stack&() const { return *stack_; }

 private:
  static inline const Stack kNone = {};

  const Stack* stack_ = &kNone;
};

// The stack of a verb's caller, with the lines of its script. The caller holds no lock.
KnownStack here();

}  // namespace dapple::soft::check
