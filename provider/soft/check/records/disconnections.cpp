// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/disconnections.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>

namespace dapple::soft::check {

void Disconnections::assert_consistent() const {
  assert_held(mutex_);
  // Otherwise a post would not look.
  assert(any_.load() == !ended_.empty());
  assert(ended_.size() <= kMax);
}

void Disconnections::add(uint32_t qpn, uint32_t peer, const Stack& got) {
  const std::lock_guard lock(mutex_);
  ended_.push_back({qpn, peer, gettid(), got});
  if (ended_.size() > kMax) ended_.pop_front();
  any_.store(true);
  assert_consistent();
}

void Disconnections::forget(uint32_t qpn) {
  // Most programs do not use librdmacm.
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(ended_, [qpn](const Disconnection& each) { return each.qpn == qpn; });
  any_.store(!ended_.empty());
  assert_consistent();
}

std::optional<Stack> Disconnections::take(uint32_t qpn, uint32_t peer) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const pid_t thread = gettid();
  std::optional<Stack> got;
  std::erase_if(ended_, [&](const Disconnection& each) {
    const bool is_end = each.qpn == qpn || (each.qpn == peer && each.peer == qpn);
    if (!is_end || each.thread != thread) return false;
    if (!got || each.qpn == qpn) got = each.got;
    return true;
  });
  any_.store(!ended_.empty());
  assert_consistent();
  return got;
}

}  // namespace dapple::soft::check
