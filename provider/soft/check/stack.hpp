// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_CHECK_STACK_HPP
#define DAPPLE_PROVIDER_SOFT_CHECK_STACK_HPP

#include <execinfo.h>

namespace dapple::soft::check {

// The callers of a verb, as return addresses: innermost first, the device's own functions included.
struct Stack {
  static constexpr int kMost = 24;
  void* callers[kMost];
  int count = 0;

  // Takes microseconds.
  static Stack here() {
    Stack stack;
    stack.count = backtrace(stack.callers, kMost);
    return stack;
  }
};

}  // namespace dapple::soft::check

#endif  // DAPPLE_PROVIDER_SOFT_CHECK_STACK_HPP
