// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The watch over the program's pages: each access to a closed page faults. The page is then opened for this one
// instruction and closed again. So each access is seen, and the first read of a line that the device has changed is
// reported with its stack.
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "provider/common/fault.hpp"
#include "provider/emulator/shadow/finding.hpp"
#include "provider/emulator/shadow/shadow.hpp"

namespace dapple::provider {
namespace {

using Chunk = ShadowPages::Chunk;
using Page = ShadowPages::Page;

std::atomic<Shadow*> watching = nullptr;
std::atomic<bool> told = false;
std::atomic<uint64_t> num_openings = 0;
struct sigaction before_segv;
struct sigaction before_trap;

bool allow(uintptr_t page, int protection) {
  return mprotect(reinterpret_cast<void*>(page), Shadow::kPage, protection) == 0;
}

// The pages that lie completely in a region; other pages also hold data that the device does not use.
uintptr_t whole_pages_begin(const ShadowRegion& region) {
  return ShadowPages::page_of(region.address + Shadow::kPage - 1);
}
uintptr_t whole_pages_end(const ShadowRegion& region) {
  return ShadowPages::page_of(region.end());
}

#if defined(__x86_64__)
constexpr long long kTrapFlag = 0x100;
constexpr long long kFaultOfWrite = 2;

// The pages that are open for the present instruction: an instruction that moves data has two operands, each on at most
// two pages.
constexpr int kMaxOpen = 8;
[[gnu::tls_model("initial-exec")]] thread_local uintptr_t open_pages_here[kMaxOpen];
[[gnu::tls_model("initial-exec")]] thread_local int open_count;

// The thread's last fault on a page that is no longer watched, and the value of openings() at that time.
struct Fault {
  uintptr_t address;
  uintptr_t instruction;
  uint64_t openings;
  bool operator==(const Fault&) const = default;
};
[[gnu::tls_model("initial-exec")]] thread_local Fault last_fault;

// clflush, clflushopt or clwb: such an instruction faults as a read does, and gives the program no byte.
bool is_cache_maintenance(uintptr_t instruction) {
  const auto* at = reinterpret_cast<const unsigned char*>(instruction);
  bool has_operand_prefix = false;
  for (; *at == 0x66; ++at) has_operand_prefix = true;
  if ((*at & 0xF0) == 0x40) ++at;  // REX
  if (at[0] != 0x0F || at[1] != 0xAE || at[2] >= 0xC0) return false;
  const unsigned operation = at[2] >> 3 & 7;
  return operation == 7 || (operation == 6 && has_operand_prefix);
}

void on_fault(int number, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Shadow* shadow = watching.load(std::memory_order_acquire);
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_read = (registers[REG_ERR] & kFaultOfWrite) == 0;
  const auto instruction = static_cast<uintptr_t>(registers[REG_RIP]);
  if (info->si_code != SEGV_ACCERR || SignalSafeLock::is_held_here())
    return pass_on(before_segv, number, info, context);
  Shadow::Access access = Shadow::Access::kNotOurs;
  while (shadow != nullptr && access == Shadow::Access::kNotOurs) {
    access = shadow->on_access(address, is_read, instruction);
    shadow = shadow->watched_before();
  }
  if (access == Shadow::Access::kAgain) {
    // Another thread may have ended the page's watch after the fault, so the instruction is repeated. If it faults once
    // more and no watch has ended since, the fault is the program's own. The counter is read after on_access(), so that
    // it includes a watch that ended between the fault and on_access().
    const Fault fault = {address, instruction, Shadow::openings()};
    if (fault == last_fault) access = Shadow::Access::kNotOurs;
    last_fault = fault;
  }
  if (access == Shadow::Access::kNotOurs) return pass_on(before_segv, number, info, context);
  if (access != Shadow::Access::kStep || open_count == kMaxOpen) return;
  assert(0 <= open_count && open_count < kMaxOpen);
  open_pages_here[open_count++] = ShadowPages::page_of(address);
  registers[REG_EFL] |= kTrapFlag;
}

void on_step(int number, siginfo_t* info, void* context) {
  if (open_count == 0) return pass_on(before_trap, number, info, context);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  Shadow* shadow = watching.load(std::memory_order_acquire);
  while (open_count > 0) {
    const uintptr_t page = open_pages_here[--open_count];
    if (shadow != nullptr) shadow->close_page(page);
  }
}
#else
bool is_cache_maintenance(uintptr_t) {
  return false;
}
#endif

// file+offset is what addr2line(1) takes.
void name_instruction(uintptr_t instruction, char* text, size_t size) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(instruction), &info) == 0 || info.dli_fname == nullptr) {
    snprintf(text, size, "%#" PRIxPTR, instruction);
    return;
  }
  snprintf(text, size, "%s+%#" PRIxPTR "%s%s%s", info.dli_fname,
           instruction - reinterpret_cast<uintptr_t>(info.dli_fbase), info.dli_sname ? " (" : "",
           info.dli_sname ? info.dli_sname : "", info.dli_sname ? ")" : "");
}

}  // namespace

bool Shadow::start_watch() {
#if defined(__x86_64__)
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  // In a child of fork(), before_ is the parent's shadow, whose pages are still closed. The handlers are inherited.
  before_ = watching.load(std::memory_order_acquire);
  told.store(false, std::memory_order_relaxed);
  watching.store(this, std::memory_order_release);
  if (before_ != nullptr) return true;
  action.sa_sigaction = on_fault;
  if (sigaction(SIGSEGV, &action, &before_segv) != 0) return false;
  action.sa_sigaction = on_step;
  return sigaction(SIGTRAP, &action, &before_trap) == 0;
#else
  return false;
#endif
}

void Shadow::stop_watch() {
  Shadow* self = this;
  if (!watching.compare_exchange_strong(self, nullptr)) return;
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGTRAP, &before_trap, nullptr);
}

bool Shadow::watch(ShadowRegion* region) {
  if (in_child() || watching.load(std::memory_order_acquire) != this) return true;
  const SignalSafeLock::Guard guard(lock_);
  if (region->watched) return true;
  const uintptr_t begin = whole_pages_begin(*region);
  const uintptr_t end = whole_pages_end(*region);
  // This fails if the kernel's pages are larger than kPage: a part of a page cannot be closed.
  if (begin < end && !allow(begin, PROT_NONE)) return false;
  region->watched = true;
  for (uintptr_t at = begin; at < end; at += kPage) {
    Chunk* chunk = pages_.find(at);
    Page& page = chunk->pages[ShadowPages::index_in(*chunk, at)];
    assert(page.noted > page.watched);
    ++page.watched;
    page.was_watched = true;
    close(at);
  }
  return true;
}

void Shadow::unwatch(const ShadowRegion& region) {
  if (!region.watched) return;
  const uintptr_t end = whole_pages_end(region);
  for (uintptr_t at = whole_pages_begin(region); at < end; at += kPage) {
    Chunk* chunk = pages_.find(at);
    Page& page = chunk->pages[ShadowPages::index_in(*chunk, at)];
    assert(page.watched > 0 && !page.in_sync);
    if (--page.watched > 0) continue;
    allow(at, PROT_READ | PROT_WRITE);
    num_openings.fetch_add(1, std::memory_order_release);
  }
}

uint64_t Shadow::openings() {
  return num_openings.load(std::memory_order_acquire);
}

void Shadow::open_pages(Span pages) {
  if (watching.load(std::memory_order_acquire) != this) return;
  for (uintptr_t at = pages.begin; at < pages.end; at += kPage) {
    const Chunk* chunk = pages_.find(at);
    if (chunk != nullptr && chunk->pages[ShadowPages::index_in(*chunk, at)].watched > 0) {
      allow(at, PROT_READ | PROT_WRITE);
    }
  }
}

void Shadow::close_pages(Span pages) {
  if (watching.load(std::memory_order_acquire) != this) return;
  for (uintptr_t at = pages.begin; at < pages.end; at += kPage) close(at);
}

void Shadow::begin_sync(uintptr_t page_address) {
  Page* page = pages_.find_page(page_address);
  if (page == nullptr || page->watched == 0) return;
  assert(!page->in_sync);
  page->in_sync = true;
  allow(page_address, PROT_READ | PROT_WRITE);
}

void Shadow::end_sync(uintptr_t page_address) {
  Page* page = pages_.find_page(page_address);
  if (page == nullptr || page->watched == 0) return;
  assert(page->in_sync);
  page->in_sync = false;
  close(page_address);
}

void Shadow::close(uintptr_t page_address) {
  const Chunk* chunk = pages_.find(page_address);
  if (chunk == nullptr || told.load(std::memory_order_relaxed)) return;
  const Page& page = chunk->pages[ShadowPages::index_in(*chunk, page_address)];
  if (page.watched == 0 || page.in_sync) return;
  allow(page_address, PROT_NONE);
}

void Shadow::close_page(uintptr_t page_address) {
  if (in_child()) return;
  const SignalSafeLock::Guard guard(lock_);
  close(page_address);
}

Shadow::Access Shadow::on_access(uintptr_t address, bool is_read, uintptr_t instruction) {
  if (in_child()) {
    // The child has only this thread. It takes no lock, which another thread of the parent may have held at the fork.
    const Chunk* chunk = pages_.find(address);
    if (chunk == nullptr || chunk->pages[ShadowPages::index_in(*chunk, address)].watched == 0) return Access::kNotOurs;
    return allow(ShadowPages::page_of(address), PROT_READ | PROT_WRITE) ? Access::kOpened : Access::kNotOurs;
  }
  const SignalSafeLock::Guard guard(lock_);
  const uintptr_t page_address = ShadowPages::page_of(address);
  const Chunk* chunk = pages_.find(address);
  if (chunk == nullptr) return Access::kNotOurs;
  const Page& page = chunk->pages[ShadowPages::index_in(*chunk, address)];
  if (page.watched == 0) return page.was_watched ? Access::kAgain : Access::kNotOurs;
  uintptr_t physical = 0;
  const Chunk* shadow = pages_.find_shadow(address & ~(kLine - 1), &physical);
  assert(shadow != nullptr && shadow->memory != nullptr);
  const size_t line = physical - shadow->address;
  // The bytes of the instruction can be read unless they lie on the closed page.
  if (is_read && memcmp(shadow->memory + line, shadow->baseline + line, kLine) != 0 &&
      (ShadowPages::page_of(instruction) == page_address || !is_cache_maintenance(instruction)) &&
      !told.exchange(true)) {
    tell_stale_read(address, instruction);
  }
  if (!allow(page_address, PROT_READ | PROT_WRITE)) return Access::kNotOurs;
  return told.load(std::memory_order_relaxed) ? Access::kOpened : Access::kStep;
}

void Shadow::tell_stale_read(uintptr_t address, uintptr_t instruction) {
  char code[512];
  char where[128] = "";
  name_instruction(instruction, code, sizeof code);
  const ShadowRegion* region = nullptr;
  Stack registered;
  uintptr_t at = 0;
  for (const ShadowRegion* candidate : pages_.find_shadow(address, &at)->regions) {
    if (address - candidate->address < candidate->length) region = candidate;
  }
  if (region != nullptr) {
    registered = region->registered;
    snprintf(where, sizeof where, ", offset %zu of the region %#" PRIxPTR " of %zu bytes,",
             static_cast<size_t>(address - region->address), region->address, region->length);
  }
  report(kUnsyncedForCpu, {{"read", is_checked() ? stack_of_fault(instruction) : Stack()}, {"registered", registered}},
         "a line that the device has changed is read before a sync: %#" PRIxPTR "%s by %s", address, where, code);
}

}  // namespace dapple::provider
