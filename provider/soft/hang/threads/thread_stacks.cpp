// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/threads/thread_stacks.hpp"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cassert>

#include "provider/common/fault.hpp"

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

#if defined(__x86_64__)
constexpr uintptr_t kSizeOfCall = 2;
#else
constexpr uintptr_t kSizeOfCall = 4;
#endif

// Whether the instruction enters the kernel.
bool is_call(uintptr_t place) {
#if defined(__x86_64__)
  const auto* code = reinterpret_cast<const unsigned char*>(place);
  return code[0] == 0x0F && code[1] == 0x05;
#elif defined(__aarch64__)
  return *reinterpret_cast<const uint32_t*>(place) == 0xD4000001;
#elif defined(__riscv)
  // Behind a short instruction its address is a multiple of two only.
  const auto* code = reinterpret_cast<const uint16_t*>(place);
  return code[0] == 0x0073 && code[1] == 0;
#elif defined(__powerpc64__)
  const uint32_t code = *reinterpret_cast<const uint32_t*>(place);
  return code == 0x44000002 || code == 0x44000001;
#else
  (void)place;
  return false;
#endif
}

// A system call that waits is interrupted at its instruction, if it will be restarted, or behind it.
bool is_in_kernel(uintptr_t place) {
  return is_call(place - kSizeOfCall) || is_call(place);
}

// The kernel keeps them there on this processor alone.
std::optional<CallArguments> arguments_in_registers([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto value = [&registers](int name) { return static_cast<uint64_t>(registers[name]); };
  return CallArguments{value(REG_RDI), value(REG_RSI), value(REG_RDX)};
#else
  return std::nullopt;
#endif
}

void take_stack(int, siginfo_t*, void* context) {
  int own = static_cast<int>(syscall(SYS_gettid));
  // Too late, or another's signal.
  if (!wanted.compare_exchange_strong(own, 0)) return;
  interrupted_at = provider::interrupted_place(context);
  const bool in_kernel = is_in_kernel(interrupted_at);
  slot.in_kernel = in_kernel;
  slot.arguments = arguments_in_registers(context);
  slot.stack = Stack::here();
  taken.store(true);
  // The program must not see that its call was interrupted.
  while (in_kernel) {
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

// Whether the thread whose turn it was has been interrupted in this call.
bool is_the_interrupted(const WaitingCall& call) {
  return slot.in_kernel && (call.behind == interrupted_at || call.behind == interrupted_at + kSizeOfCall);
}

bool ask(int thread, int number) {
  assert(wanted.load() == 0);
  // The signal ends the wait.
  const std::optional<WaitingCall> call = read_waiting_call(thread);
  taken.store(false);
  wanted.store(thread);
  if (syscall(SYS_tgkill, getpid(), thread, number) == 0) {
    for (int i = 0; i < kPatience && !taken.load(); i++) wait_a_little();
  }
  int still = thread;
  if (wanted.compare_exchange_strong(still, 0)) return false;
  while (!taken.load()) wait_a_little();
  if (!slot.arguments && call && is_the_interrupted(*call)) slot.arguments = call->arguments;
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
