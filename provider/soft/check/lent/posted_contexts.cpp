// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/posted_contexts.hpp"

#include <cassert>
#include <mutex>
#include <new>
#include <utility>

namespace dapple::soft::check {
namespace {

// No program has memory at lower addresses (vm.mmap_min_addr), or at those of the kernel.
constexpr uint64_t kLowest = 1 << 16, kHighest = uint64_t{1} << 56;

}  // namespace

bool PostedContexts::may_be_context(uint64_t id) const {
  return id >= kLowest && id < kHighest && interest_.load(std::memory_order_acquire) != nullptr;
}

uint64_t PostedContexts::add(uint64_t id, const Request& request) {
  const std::lock_guard lock(mutex_);
  drop_freed(id);
  if (requests_.size() == kMax) return kNone;
  const uint64_t number = ++last_number_;
  assert(number != kNone);
  requests_.emplace(id, Posted{number, request, nullptr});
  publish();
  return number;
}

void PostedContexts::forget_freed(uint64_t id) {
  const std::lock_guard lock(mutex_);
  drop_freed(id);
  publish();
}

void PostedContexts::remove(uint64_t id, uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto [at, end] = requests_.equal_range(id);
  while (at != end && at->second.number != number) ++at;
  if (at != end) requests_.erase(at);
  publish();
}

bool PostedContexts::has_context(const void* block, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const std::lock_guard lock(mutex_);
  const auto found = requests_.lower_bound(begin);
  return found != requests_.end() && found->first < begin + size;
}

void PostedContexts::mark_freed(const void* block, size_t size, const Stack& stack) {
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const std::lock_guard lock(mutex_);
  for (auto at = requests_.lower_bound(begin); at != requests_.end() && at->first < begin + size; ++at) {
    // Without memory nothing is marked.
    if (at->second.freed == nullptr) at->second.freed.reset(new (std::nothrow) Stack(stack));
  }
}

std::optional<PostedContexts::Freed> PostedContexts::polled(uint32_t qpn, uint64_t id, bool is_receive) {
  if (!may_be_context(id)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  auto [at, end] = requests_.equal_range(id);
  for (; at != end; ++at) {
    const Request& request = at->second.request;
    // A shared receive queue has no number.
    const bool is_its_own = request.owner.qpn == qpn || request.owner.qpn == 0;
    if (is_its_own && (request.receives != nullptr) == is_receive) break;
  }
  if (at == end) return std::nullopt;
  const Posted found = std::move(at->second);
  requests_.erase(at);
  publish();
  return found.freed == nullptr ? std::nullopt : std::optional(Freed{found.request, *found.freed});
}

void PostedContexts::end(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  std::erase_if(requests_, [qpn](const auto& entry) { return entry.second.request.owner.qpn == qpn; });
  publish();
}

void PostedContexts::end(const void* receives) {
  const std::lock_guard lock(mutex_);
  std::erase_if(requests_, [receives](const auto& entry) { return entry.second.request.receives == receives; });
  publish();
}

void PostedContexts::forget_all() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
  publish();
}

void PostedContexts::drop_freed(uint64_t id) {
  assert_held(mutex_);
  auto [at, end] = requests_.equal_range(id);
  while (at != end) at = at->second.freed == nullptr ? std::next(at) : requests_.erase(at);
}

void PostedContexts::publish() {
  assert_held(mutex_);
  assert(requests_.size() <= kMax);
  HeapInterest* const interest = interest_.load(std::memory_order_acquire);
  if (interest == nullptr) return;
  interest->contexts_begin.store(requests_.empty() ? UINTPTR_MAX : requests_.begin()->first, std::memory_order_relaxed);
  interest->contexts_end.store(requests_.empty() ? 0 : requests_.rbegin()->first + 1, std::memory_order_relaxed);
}

}  // namespace dapple::soft::check
