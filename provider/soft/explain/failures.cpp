// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/failures.hpp"

#include <cassert>
#include <mutex>

namespace dapple::soft::explain {

Failures& Failures::get() {
  // Threads that outlive main() use it.
  static auto* const failures = new Failures;
  return *failures;
}

void Failures::keep(const Failure& failure, bool is_receive) {
  const std::lock_guard lock(mutex_);
  if (failures_.size() >= kMax) failures_.erase(failures_.begin());
  assert(failure.status != roce::CompletionStatus::kSuccess);
  failures_.insert_or_assign({failure.qpn, is_receive, failure.id}, failure);
  assert(failures_.size() <= kMax);
}

void Failures::keep_refusal(uint32_t qpn, uint32_t peer, const Reason& reason) {
  const std::lock_guard lock(mutex_);
  if (refusals_.size() >= kMax) refusals_.erase(refusals_.begin());
  refusals_.insert_or_assign({qpn, peer}, reason);
}

Reason Failures::take_refusal(uint32_t qpn, uint32_t peer) {
  const std::lock_guard lock(mutex_);
  const auto node = refusals_.extract({qpn, peer});
  return node.empty() ? Reason{} : node.mapped();
}

std::optional<Failure> Failures::take(uint32_t qpn, bool is_receive, uint64_t id, roce::CompletionStatus status) {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find({qpn, is_receive, id});
  if (found == failures_.end() || found->second.status != status) return std::nullopt;
  const Failure failure = found->second;
  assert(failure.qpn == qpn && failure.id == id);
  failures_.erase(found);
  return failure;
}

}  // namespace dapple::soft::explain
