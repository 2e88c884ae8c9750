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

// While it lives, here() answers with its stack, so that the layers below the first one need not look. A verb's
// function has it on its stack.
class CallStack {
 public:
  CallStack() : stack_(here()), outer_(present_) { present_ = &stack_; }
  ~CallStack() { present_ = outer_; }
  CallStack(const CallStack&) = delete;
  CallStack& operator=(const CallStack&) = delete;

  KnownStack get() const { return stack_; }

 private:
  friend KnownStack here();

  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit const KnownStack* present_ = nullptr;

  const KnownStack stack_;
  const KnownStack* const outer_;
};

}  // namespace dapple::soft::check
