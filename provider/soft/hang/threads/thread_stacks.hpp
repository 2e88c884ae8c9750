// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The stacks of the program's threads, each taken by the thread itself in a handler of a signal. The process ends
// afterwards: a system call that waits is over for the program, so its thread stays in the handler.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "provider/soft/check/reports/stack.hpp"
#include "provider/soft/hang/threads/proc_files.hpp"

namespace dapple::soft::hang {

struct ThreadStack {
  int thread = 0;
  std::string name;
  check::Stack stack;                      // empty: the thread blocks the signal
  bool in_kernel = false;                  // it waits in a system call
  std::optional<CallArguments> arguments;  // of that call, if they are known
};

// For one thread at a time, which is none of the program. Threads of ours are left out.
std::vector<ThreadStack> stacks_of_threads();

// The ids of the program's threads.
std::vector<int> programs_threads();

}  // namespace dapple::soft::hang
