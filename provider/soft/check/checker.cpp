// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/checker.hpp"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <cassert>
#include <utility>

#include "provider/common/settings.hpp"
#include "provider/soft/check/late_queue_pair.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/check/reports/known_stacks.hpp"
#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/soft/check/reports/scripts.hpp"
#include "provider/soft/check/reports/symbols.hpp"
#include "provider/soft/check/watched_heap.hpp"
#include "provider/soft/sanitizers/announced_peers.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft::check {

namespace {

bool is_emulated() {
  const char* emulation = provider::settings().emulate;
  return emulation != nullptr && strcmp(emulation, "0") != 0;
}

}  // namespace

Checker::Checker(const char* records)
    : reporter(records),
      races(reporter.options().races || reporter.options().strict ? std::make_unique<Races>() : nullptr),
      withholds(Sanitizer::of_program() == nullptr && !is_emulated()) {}

Checker* Checker::get() {
  static Checker* const checker = []() -> Checker* {
    const char* records = provider::settings().check_records;
    // dapple-run --explain has a file for its reports, too.
    if (records == nullptr || provider::is_on(provider::settings().explain)) return nullptr;
    prepare_symbols();
    Scripts::get();
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    // Threads that outlive main() use it.
    auto* made = new Checker(records);
    made->freed = watch_heap(made->mapped, made->contexts);
    if (made->withholds) ClosedPages::start(report_look);
    AnnouncedPeers::start(made->reporter.options().strict);
    atexit(before_exit);
    return made;
  }();
  return checker;
}

void Checker::before_exit() {
  Checker& checker = *get();
  if (!checker.is_its_process()) return;
  // Without late requests, the device would have sent these requests by now, if it could.
  LateQueuePair::let_all_begin();
  if (checker.reporter.options().notes) checker.objects.report_all(checker.reporter);
  checker.reporter.await_reports();
}

std::unique_ptr<roce::QueuePair> Checker::late(std::unique_ptr<roce::QueuePair> engine) {
  const std::optional<int> chosen = reporter.options().delay_seed;
  const uint64_t seed = chosen.has_value() ? static_cast<uint64_t>(*chosen) : seed_of_process().value_or(1);
  if (engine == nullptr || chosen == 0) return engine;
  const uint64_t number = queue_pairs_.fetch_add(1, std::memory_order_relaxed);
  return std::make_unique<LateQueuePair>(std::move(engine), seed + (number << 32));
}

void Checker::add(PostedSends& sends) {
  const std::lock_guard lock(sends_mutex_);
  [[maybe_unused]] const bool is_new = sends_.insert(&sends).second;
  assert(is_new);
}

void Checker::remove(PostedSends& sends) {
  const std::lock_guard lock(sends_mutex_);
  [[maybe_unused]] const size_t removed = sends_.erase(&sends);
  assert(removed == 1);
}

void Checker::polled_flush(uint32_t qpn, uint64_t id) {
  const std::lock_guard lock(sends_mutex_);
  for (PostedSends* sends : sends_) sends->polled_flush(qpn, id);
}

void Checker::overwritten(const std::byte* memory, size_t size) {
  // A request that is noted after this look copies the bytes that the device has stored; see copy_of().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  lent.overwritten(memory, size);
  if (!PostedSends::any_waits()) return;
  const std::lock_guard lock(sends_mutex_);
  for (PostedSends* sends : sends_) sends->overwritten(memory, size);
}

void Checker::before_fork() {
  Checker& checker = *get();
  // Other libraries' handlers for forks may call malloc() while the marks are locked.
  pause_heap(true);
  LockOrder::forks(true);
  checker.sends_mutex_.lock();
  for (PostedSends* sends : checker.sends_) sends->mutex().lock();
  checker.asked.mutex().lock();
  checker.disconnections.mutex().lock();
  checker.keys.mutex().lock();
  checker.objects.mutex().lock();
  checker.loads.mutex().lock();
  checker.writes.mutex().lock();
  if (checker.races != nullptr) checker.races->mutex().lock();
  checker.reporter.mutex().lock();
  Scripts::get().mutex().lock();
  KnownStacks::get().mutex().lock();
  checker.receives.mutex().lock();
  checker.lent.mutex().lock();
  checker.withheld.mutex().lock();
  if (checker.freed != nullptr) checker.freed->mutex().lock();
}

void Checker::unlock_all() {
  if (freed != nullptr) freed->mutex().unlock();
  withheld.mutex().unlock();
  lent.mutex().unlock();
  receives.mutex().unlock();
  KnownStacks::get().mutex().unlock();
  Scripts::get().mutex().unlock();
  reporter.mutex().unlock();
  if (races != nullptr) races->mutex().unlock();
  writes.mutex().unlock();
  loads.mutex().unlock();
  objects.mutex().unlock();
  keys.mutex().unlock();
  disconnections.mutex().unlock();
  asked.mutex().unlock();
  for (PostedSends* sends : sends_) sends->mutex().unlock();
  sends_mutex_.unlock();
}

void Checker::after_fork() {
  get()->unlock_all();
  LockOrder::forks(false);
  pause_heap(false);
}

// The child may open a device itself, and use its copy of the parent's memory for requests of its own.
void Checker::forget_all() {
  ClosedPages::after_fork_in_child();
  withheld.forget_all();
  contexts.forget_all();
  lent.forget_all();
  receives.forget_all();
  objects.forget_all();
  mapped.forget();
  LateQueuePair::forget_waits();
}

void Checker::after_fork_in_child() {
  Checker& checker = *get();
  assert_held(checker.sends_mutex_);
  if (checker.races != nullptr) checker.races->close();
  checker.unlock_all();
  checker.forget_all();
  checker.process_.store(getpid(), std::memory_order_relaxed);
  LockOrder::forks(false);
  pause_heap(false);
}

}  // namespace dapple::soft::check
