// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The watch over the program's pages: nobody may touch them, a fault tells who does, and the instruction is then
// carried out alone, after which the page is closed again. So each access is seen, and the first read of a line that
// the device has changed is reported with its place in the program.
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "provider/emulator/shadow_page.hpp"

namespace dapple::provider {
namespace {

std::atomic<Shadow*> watching = nullptr;
std::atomic<bool> told = false;
struct sigaction before_segv;
struct sigaction before_trap;

bool allow(uintptr_t page, int protection) {
  return mprotect(reinterpret_cast<void*>(page), Shadow::kPage, protection) == 0;
}

#if defined(__x86_64__)
constexpr long long kTrapFlag = 0x100;
constexpr long long kFaultOfWrite = 2;

// The pages that the instruction under way has been given: one that moves data has two operands, on two pages at most.
constexpr int kMaxOpen = 8;
[[gnu::tls_model("initial-exec")]] thread_local uintptr_t open_pages[kMaxOpen];
[[gnu::tls_model("initial-exec")]] thread_local int open_count;

// Not ours: what the program had there, or the end of it.
void pass_on(const struct sigaction& action, int number, siginfo_t* info, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(number, info, context);
  if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return action.sa_handler(number);
  // Comes again, and ends the process.
  signal(number, SIG_DFL);
  if (number == SIGTRAP) raise(number);
}

void on_fault(int number, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Shadow* shadow = watching.load(std::memory_order_acquire);
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_read = (registers[REG_ERR] & kFaultOfWrite) == 0;
  bool step = false;
  const auto instruction = static_cast<uintptr_t>(registers[REG_RIP]);
  if (info->si_code != SEGV_ACCERR) return pass_on(before_segv, number, info, context);
  while (shadow != nullptr && !shadow->on_access(address, is_read, instruction, &step))
    shadow = shadow->watched_before();
  if (shadow == nullptr) return pass_on(before_segv, number, info, context);
  if (!step || open_count == kMaxOpen) return;
  open_pages[open_count++] = address & ~(Shadow::kPage - 1);
  registers[REG_EFL] |= kTrapFlag;
}

void on_step(int number, siginfo_t* info, void* context) {
  if (open_count == 0) return pass_on(before_trap, number, info, context);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  Shadow* shadow = watching.load(std::memory_order_acquire);
  while (open_count > 0) {
    const uintptr_t page = open_pages[--open_count];
    if (shadow != nullptr) shadow->close_page(page);
  }
}
#endif

// file+offset is what addr2line(1) takes.
void name_place(uintptr_t instruction, char* text, size_t size) {
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
  // In a child of fork() there is the parent's, whose pages are still closed.
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

void Shadow::watch(ShadowRegion* region) {
  if (in_child() || watching.load(std::memory_order_acquire) != this) return;
  const Guard guard(*this);
  if (region->watched) return;
  region->watched = true;
  const uintptr_t end = whole_pages_end(*region);
  for (uintptr_t page = whole_pages_begin(*region); page < end; page += kPage) {
    ++find(page)->watched;
    close_page(page);
  }
}

void Shadow::unwatch(const ShadowRegion& region) {
  if (!region.watched) return;
  const uintptr_t end = whole_pages_end(region);
  for (uintptr_t page = whole_pages_begin(region); page < end; page += kPage) {
    if (--find(page)->watched == 0) allow(page, PROT_READ | PROT_WRITE);
  }
}

void Shadow::open_pages_of(uintptr_t address, size_t length) {
  if (in_child() || watching.load(std::memory_order_acquire) != this) return;
  const Guard guard(*this);
  for (uintptr_t at = address & ~(kPage - 1); at < address + length; at += kPage) {
    const Page* page = find(at);
    if (page != nullptr && page->watched > 0) allow(at, PROT_READ | PROT_WRITE);
  }
}

void Shadow::begin_sync(Page* page) {
  if (page->watched == 0) return;
  page->in_sync = true;
  allow(page->address, PROT_READ | PROT_WRITE);
}

void Shadow::end_sync(Page* page) {
  if (page->watched == 0) return;
  page->in_sync = false;
  close_page(page->address);
}

void Shadow::close_page(uintptr_t page_address) {
  const Page* page = find(page_address);
  if (page == nullptr || page->watched == 0 || page->in_sync || told.load(std::memory_order_relaxed)) return;
  allow(page_address, PROT_NONE);
}

// In a signal handler: no lock, as the access may be anybody's. The page is watched, so it stays in the table.
bool Shadow::on_access(uintptr_t address, bool is_read, uintptr_t instruction, bool* step) {
  const uintptr_t page_address = address & ~(kPage - 1);
  const Page* page = find(page_address);
  if (page == nullptr || page->watched == 0) return false;
  const auto index = static_cast<size_t>(page - pages_);
  const size_t line = address % kPage & ~(kLine - 1);
  if (is_read && !page->in_sync && !in_child() && memcmp(memory(index) + line, baseline(index) + line, kLine) != 0 &&
      !told.exchange(true)) {
    tell_stale_read(address, instruction);
  }
  *step = !page->in_sync && !in_child() && !told.load(std::memory_order_relaxed);
  return allow(page_address, PROT_READ | PROT_WRITE);
}

void Shadow::tell_stale_read(uintptr_t address, uintptr_t instruction) {
  char place[512];
  char text[768];
  name_place(instruction, place, sizeof place);
  const ShadowRegion* region = nullptr;
  if (pthread_mutex_trylock(&mutex_) == 0) {
    region = regions_;
    while (region != nullptr && address - region->address >= region->length) region = region->next;
    pthread_mutex_unlock(&mutex_);
  }
  int length =
      snprintf(text, sizeof text,
               "dapple: emulator: a line that the device has changed is read before a sync: %#" PRIxPTR, address);
  if (region != nullptr) {
    length += snprintf(text + length, sizeof text - static_cast<size_t>(length),
                       ", offset %zu of the region %#" PRIxPTR " of %zu bytes,",
                       static_cast<size_t>(address - region->address), region->address, region->length);
  }
  length += snprintf(text + length, sizeof text - static_cast<size_t>(length), " by %s\n", place);
  if (length > static_cast<int>(sizeof text)) length = sizeof text;
  if (write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) return;
}

}  // namespace dapple::provider
