// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/keys.hpp"

#include <cassert>

namespace dapple::soft::check {

void Keys::assert_consistent() const {
  assert_held(mutex_);
  assert(deregistered_.size() <= kMaxDeregistered);
  assert(order_of_windows_.size() == ended_windows_.size() && ended_windows_.size() <= kMaxEndedWindows);
}

void Keys::add(const void* device, uint32_t key, const Registration& registration) {
  const std::lock_guard lock(mutex_);
  assert(device != nullptr && !registration.deregistered);
  registrations_.insert_or_assign({device, key}, registration);
  assert_consistent();
}

void Keys::remove(const void* device, uint32_t key) {
  const Stack stack = here();
  const std::lock_guard lock(mutex_);
  const auto found = registrations_.find({device, key});
  if (found == registrations_.end()) return;
  found->second.deregistered = stack;
  deregistered_.push_back(found->first);
  if (deregistered_.size() <= kMaxDeregistered) return;
  const auto oldest = registrations_.find(deregistered_.front());
  if (oldest != registrations_.end() && oldest->second.deregistered) registrations_.erase(oldest);
  deregistered_.pop_front();
  assert_consistent();
}

void Keys::restore(const void* device, uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = registrations_.find({device, key});
  if (found != registrations_.end()) found->second.deregistered.reset();
  assert_consistent();
}

void Keys::end_window(const void* device, uint32_t key, const EndedWindow& end) {
  const std::lock_guard lock(mutex_);
  assert(device != nullptr && end.how != nullptr);
  if (ended_windows_.insert_or_assign({device, key}, end).second) order_of_windows_.emplace_back(device, key);
  if (order_of_windows_.size() > kMaxEndedWindows) {
    ended_windows_.erase(order_of_windows_.front());
    order_of_windows_.pop_front();
  }
  assert_consistent();
}

std::optional<EndedWindow> Keys::ended_window(const void* device, uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = ended_windows_.find({device, key});
  return found == ended_windows_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Registration> Keys::find(const void* device, uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = registrations_.find({device, key});
  return found == registrations_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace dapple::soft::check
