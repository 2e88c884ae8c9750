// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For handlers of signals: the place of the program, and of SIGSEGV those that let some accesses go on.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>

#include "provider/common/stack.hpp"

namespace dapple::provider {

// The instruction that has faulted, or that comes next; 0 if that is not known for this processor.
inline uintptr_t interrupted_place(const void* context) {
  [[maybe_unused]] const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#elif defined(__riscv)
  return machine.__gregs[REG_PC];
#elif defined(__powerpc64__)
  return machine.gp_regs[PT_NIP];
#else
  return 0;
#endif
}

// The stack of the instruction that has faulted, without the frames of the handler, which calls this.
inline Stack stack_of_fault(uintptr_t place) {
  Stack stack = Stack::here();
  void** const end = stack.callers + stack.count;
  void** const first = std::find(stack.callers, end, reinterpret_cast<void*>(place));
  if (first == end) return stack;
  stack.count = static_cast<int>(std::copy(first, end, stack.callers) - stack.callers);
  // The others are return addresses, which are behind their calls.
  stack.callers[0] = static_cast<char*>(stack.callers[0]) + 1;
  return stack;
}

// The signal is not for the handler that was installed after `before`: calls the program's own or, without one, ends
// the program.
inline void pass_on(const struct sigaction& before, int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  // The signal is raised again and ends the process. A fault needs no raise().
  signal(number, SIG_DFL);
  if (number == SIGTRAP || info->si_code <= 0) raise(number);
}

}  // namespace dapple::provider
