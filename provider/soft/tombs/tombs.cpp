// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tombs/tombs.hpp"

#include <pthread.h>

#include <cassert>
#include <mutex>
#include <utility>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/explain/last_refusal.hpp"
#include "provider/soft/objects/kept_memory.hpp"

namespace dapple::soft::tombs {

Tombs& Tombs::get() {
  // Threads that outlive main() use it.
  static Tombs* const tombs = [] {
    auto* made = new Tombs;
    KeptMemory::keep_by([](void* memory) { get().keep(memory); });
    // No fork happens while another thread holds the lock, so that the child can use it.
    pthread_atfork(before_fork, after_fork, after_fork);
    return made;
  }();
  return *tombs;
}

void Tombs::assert_consistent() const {
  assert_held(mutex_);
  assert(memory_.size() <= kMax);
  assert(tombs_.empty() || any());
}

void Tombs::keep(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  memory_.push_back(memory);
  if (memory_.size() > kMax) {
    tombs_.erase(memory_.front());
    KeptMemory::give_back(memory_.front());
    memory_.pop_front();
  }
  assert_consistent();
}

void Tombs::add(const void* object, Tomb tomb) {
  const std::lock_guard lock(mutex_);
  assert(object != nullptr && tomb.verb != nullptr && !tomb.places.empty());
  tombs_.insert_or_assign(object, std::move(tomb));
  any_.store(true, std::memory_order_release);
  assert_consistent();
}

void Tombs::remove(const void* object) {
  const std::lock_guard lock(mutex_);
  tombs_.erase(object);
}

std::optional<Tomb> Tombs::find(const void* object) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = tombs_.find(object);
  return found == tombs_.end() ? std::nullopt : std::optional(found->second);
}

bool Tombs::report_if_ended(const void* object, const char* verb) {
  const std::optional<Tomb> tomb = find(object);
  if (!tomb.has_value()) return false;
  std::vector<check::ReportedStack> places = {{"used", check::here()}};
  places.insert(places.end(), tomb->places.begin(), tomb->places.end());
  const std::string text =
      check::format("%s() for %s fails: the object is used after %s().", verb, tomb->name.c_str(), tomb->verb);
  explain::remember_refusal(text);
  check::Checker::get()->reporter.show({.kind = "used-after-destroy",
                                        .text = text,
                                        .remedy = "Use an object before it is destroyed, and destroy it once.",
                                        .places = places});
  return true;
}

}  // namespace dapple::soft::tombs
