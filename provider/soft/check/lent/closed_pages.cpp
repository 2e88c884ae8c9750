// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/closed_pages.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "provider/common/fault.hpp"

namespace dapple::soft::check {
namespace {

// kFilling: close() or open() has the slot; kTelling: the handler. kSeen: its pages are open.
enum class State : uint8_t { kFree, kFilling, kClosed, kTelling, kSeen };

// A handler takes no lock, so the closed pages are in slots, whose states hand them over.
struct Slot {
  std::atomic<State> state{State::kFree};
  std::atomic<uintptr_t> begin{0}, end{0};
  ClosedFor request;  // written in kFilling, read in kTelling

  bool holds(uintptr_t address) const {
    return begin.load(std::memory_order_relaxed) <= address && address < end.load(std::memory_order_relaxed);
  }
  bool take(State from, State to) { return state.compare_exchange_strong(from, to, std::memory_order_acq_rel); }
};

constexpr size_t kSlots = 256;
Slot slots[kSlots];
std::atomic<size_t> used_slots{0};  // no slot behind these has ever been used
std::atomic<uint64_t> openings{0};
void (*tell)(const Look& look) = nullptr;
struct sigaction before;
uintptr_t page_size;

// The program's own mprotect() would tell the check.
bool allow(uintptr_t begin, uintptr_t end, int rights) {
  return syscall(SYS_mprotect, begin, end - begin, rights) == 0;
}

Look::Kind kind_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr long long kFaultOfWrite = 2;
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return (registers[REG_ERR] & kFaultOfWrite) != 0 ? Look::Kind::kWrite : Look::Kind::kRead;
#else
  return Look::Kind::kUnknown;
#endif
}

// The thread's last fault for which no closed page was found, and the value of `openings` at that time.
struct Fault {
  uintptr_t address = 0, place = 0;
  uint64_t openings = 0;
  bool operator==(const Fault&) const = default;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit Fault last_fault;

// Opens the pages of the slot.
void see(Slot& slot, uintptr_t address, const void* context) {
  const Look look = {.address = address,
                     .kind = kind_of(context),
                     .stack = provider::stack_of_fault(provider::interrupted_place(context)),
                     .request = slot.request};
  allow(slot.begin.load(std::memory_order_relaxed), slot.end.load(std::memory_order_relaxed), PROT_READ | PROT_WRITE);
  openings.fetch_add(1);
  slot.state.store(State::kSeen, std::memory_order_release);
  tell(look);
}

// False: the fault is the program's own.
bool open_for(uintptr_t address, const void* context) {
  for (size_t i = 0; i < used_slots.load(std::memory_order_acquire); i++) {
    Slot& slot = slots[i];
    if (!slot.holds(address)) continue;
    if (slot.take(State::kClosed, State::kTelling)) {
      see(slot, address, context);
      return true;
    }
    // Another thread is about to open the pages; the access comes again.
    const State state = slot.state.load(std::memory_order_acquire);
    if (state == State::kTelling || state == State::kFilling) return true;
  }
  // Another thread may have opened the pages after the fault. If the access faults once more and none has been opened
  // since, these pages are not the check's.
  const Fault fault = {address, provider::interrupted_place(context), openings.load()};
  if (fault == last_fault) return false;
  last_fault = fault;
  return true;
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool is_ours = info->si_code == SEGV_ACCERR && open_for(reinterpret_cast<uintptr_t>(info->si_addr), context);
  errno = saved;
  if (!is_ours) provider::pass_on(before, number, info, context);
}

// True if the faults come to on_fault(), at once or by another handler of dapple's libraries.
bool gets_faults() {
  static std::atomic<void*> known_handler{reinterpret_cast<void*>(on_fault)};
  struct sigaction now;
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) == 0) return false;
  auto* const handler = reinterpret_cast<void*>(now.sa_sigaction);
  if (handler == known_handler.load(std::memory_order_relaxed)) return true;
  Dl_info info;
  if (dladdr(handler, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = strrchr(info.dli_fname, '/');
  if (strncmp(slash == nullptr ? info.dli_fname : slash + 1, "libdapple", strlen("libdapple")) != 0) return false;
  known_handler.store(handler, std::memory_order_relaxed);
  return true;
}

// The number of the first slot that nobody has; kSlots if there is none. So has() looks at few.
size_t free_slot() {
  for (size_t number = 0; number < kSlots; number++) {
    if (!slots[number].take(State::kFree, State::kFilling)) continue;
    size_t used = used_slots.load();
    while (used <= number && !used_slots.compare_exchange_weak(used, number + 1)) continue;
    return number;
  }
  return kSlots;
}

}  // namespace

void ClosedPages::start(void (*told)(const Look& look)) {
  assert(tell == nullptr);
  page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (sigaction(SIGSEGV, &action, &before) == 0) tell = told;
}

bool ClosedPages::has(const void* memory, size_t size) {
  const auto first = reinterpret_cast<uintptr_t>(memory), last = first + size;
  for (size_t i = 0; i < used_slots.load(std::memory_order_acquire); i++) {
    const Slot& slot = slots[i];
    if (slot.state.load(std::memory_order_acquire) == State::kClosed && slot.begin.load() < last &&
        first < slot.end.load()) {
      return true;
    }
  }
  return false;
}

void ClosedPages::after_fork_in_child() {
  for (Slot& slot : slots) {
    if (slot.state.load() != State::kTelling) continue;
    allow(slot.begin.load(), slot.end.load(), PROT_READ | PROT_WRITE);
    slot.state.store(State::kSeen);
  }
}

void ClosedPages::close(const Pieces& pieces, const ClosedFor& request) {
  assert(ranges_.empty());
  if (tell == nullptr) return;
  for (const Piece& piece : pieces) {
    const uintptr_t begin = (piece.begin + page_size - 1) / page_size * page_size;
    const uintptr_t end = piece.end / page_size * page_size;
    if (begin >= end || !gets_faults()) continue;
    const size_t number = free_slot();
    if (number == kSlots) return;
    Slot& slot = slots[number];
    slot.begin.store(begin, std::memory_order_relaxed);
    slot.end.store(end, std::memory_order_relaxed);
    slot.request = request;
    const bool is_closed = allow(begin, end, PROT_NONE);
    slot.state.store(is_closed ? State::kClosed : State::kFree, std::memory_order_release);
    if (!is_closed) {
      // Some of the pages may have changed.
      allow(begin, end, PROT_READ | PROT_WRITE);
      continue;
    }
    ranges_.push_back({begin, end, number});
    is_closed_ = true;
  }
}

void ClosedPages::open() {
  if (!is_closed_) return;
  is_closed_ = false;
  for (const Range& range : ranges_) {
    Slot& slot = slots[range.slot];
    // The handler takes microseconds for what it does in kTelling.
    while (!slot.take(State::kClosed, State::kFilling) && !slot.take(State::kSeen, State::kSeen)) sched_yield();
    if (slot.state.load(std::memory_order_relaxed) == State::kSeen) {
      was_seen_ = true;
    } else {
      allow(range.begin, range.end, PROT_READ | PROT_WRITE);
      openings.fetch_add(1);
    }
    slot.state.store(State::kFree, std::memory_order_release);
  }
}

}  // namespace dapple::soft::check
