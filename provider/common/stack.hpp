// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <execinfo.h>

namespace dapple::provider {

// The callers of a verb, as return addresses: innermost first, dapple's own functions included.
struct Stack {
  static constexpr int kMax = 24;
  void* callers[kMax];
  int count = 0;
  unsigned script = 0;  // the check's number of an interpreter's lines; 0: none

  // Without an interpreter's lines. Takes microseconds.
  static Stack here() {
    Stack stack;
    stack.count = backtrace(stack.callers, kMax);
    return stack;
  }
};

// Where the program did something that a finding is about.
struct ReportedStack {
  const char* title;  // "registered by ibv_reg_mr"
  Stack stack;
};

}  // namespace dapple::provider
