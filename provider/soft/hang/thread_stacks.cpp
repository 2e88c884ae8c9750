// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/thread_stacks.hpp"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cassert>

#include "provider/soft/hang/proc_files.hpp"

namespace dapple::soft::hang {
namespace {

using check::Stack;

// Milliseconds for a thread that does not block the signal: on a busy machine it may get no CPU for long.
constexpr int kPatience = 5000;

// The thread whose turn it is. It takes the turn by making this 0.
std::atomic<int> wanted{0};
std::atomic<bool> taken{false};
// Written by this thread.
ThreadStack slot;
uintptr_t interrupted_at = 0;

struct Registers {
  uintptr_t place = 0;
  bool in_kernel = false;
  uint64_t arguments[3] = {};
};

// A system call that waits is interrupted at its instruction, if it will be restarted, or behind it.
Registers registers_of(const void* context) {
  Registers found;
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  found.place = static_cast<uintptr_t>(registers[REG_RIP]);
  const auto is_call = [](uintptr_t at) {
    const auto* code = reinterpret_cast<const unsigned char*>(at);
    return code[0] == 0x0F && code[1] == 0x05;
  };
  found.in_kernel = is_call(found.place - 2) || is_call(found.place);
  found.arguments[0] = static_cast<uint64_t>(registers[REG_RDI]);
  found.arguments[1] = static_cast<uint64_t>(registers[REG_RSI]);
  found.arguments[2] = static_cast<uint64_t>(registers[REG_RDX]);
#elif defined(__aarch64__)
  found.place = static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
  const auto is_call = [](uintptr_t at) { return *reinterpret_cast<const uint32_t*>(at) == 0xD4000001; };
  found.in_kernel = is_call(found.place - 4) || is_call(found.place);
#else
  (void)context;
#endif
  return found;
}

void take_stack(int, siginfo_t*, void* context) {
  int own = static_cast<int>(syscall(SYS_gettid));
  // Too late, or another's signal.
  if (!wanted.compare_exchange_strong(own, 0)) return;
  const Registers registers = registers_of(context);
  interrupted_at = registers.place;
  slot.in_kernel = registers.in_kernel;
  memcpy(slot.arguments, registers.arguments, sizeof slot.arguments);
  slot.stack = Stack::here();
  taken.store(true);
  // The program must not see that its call was interrupted.
  while (registers.in_kernel) {
    constexpr timespec kLong = {3600, 0};
    nanosleep(&kLong, nullptr);
  }
}

// Removes the frames of the handler.
void trim(Stack& stack) {
  int first = 0;
  while (first < stack.count && reinterpret_cast<uintptr_t>(stack.callers[first]) != interrupted_at) first++;
  if (first == stack.count) first = 2 < stack.count ? 2 : 0;
  assert(0 <= first && first <= stack.count && stack.count <= Stack::kMax);
  stack.count -= first;
  memmove(stack.callers, stack.callers + first, static_cast<size_t>(stack.count) * sizeof stack.callers[0]);
  // The others are return addresses, which are behind their calls.
  if (stack.count > 0) stack.callers[0] = static_cast<char*>(stack.callers[0]) + 1;
}

// A signal that the program does not use; 0 if there is none.
int free_signal() {
  for (int number = SIGRTMAX - 1; number > SIGRTMIN; number--) {
    struct sigaction found;
    if (sigaction(number, nullptr, &found) == 0 && found.sa_handler == SIG_DFL) return number;
  }
  return 0;
}

void wait_a_little() {
  constexpr timespec kWait = {0, 1'000'000};
  nanosleep(&kWait, nullptr);
}

bool ask(int thread, int number) {
  assert(wanted.load() == 0);
  taken.store(false);
  wanted.store(thread);
  if (syscall(SYS_tgkill, getpid(), thread, number) == 0) {
    for (int i = 0; i < kPatience && !taken.load(); i++) wait_a_little();
  }
  int still = thread;
  if (wanted.compare_exchange_strong(still, 0)) return false;
  while (!taken.load()) wait_a_little();
  trim(slot.stack);
  return true;
}

}  // namespace

std::vector<int> programs_threads() {
  std::vector<int> threads;
  for (const int thread : threads_of_process()) {
    const ThreadStatus status = read_settled_thread_status(thread);
    if (!status.is_ours && !status.name.empty()) threads.push_back(thread);
  }
  return threads;
}

std::vector<ThreadStack> stacks_of_threads() {
  std::vector<ThreadStack> stacks;
  const int number = free_signal();
  struct sigaction action = {};
  action.sa_sigaction = take_stack;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  if (number == 0 || sigaction(number, &action, nullptr) != 0) return stacks;
  for (const int thread : programs_threads()) {
    const ThreadStatus status = read_thread_status(thread);
    const bool can_answer = (status.blocked >> (number - 1) & 1) == 0;
    slot = {};
    if (!can_answer || !ask(thread, number)) slot = {};
    slot.thread = thread;
    slot.name = status.name;
    stacks.push_back(slot);
  }
  return stacks;
}

}  // namespace dapple::soft::hang
