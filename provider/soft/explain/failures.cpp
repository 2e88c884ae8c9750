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
  assert(failure.status != roce::CompletionStatus::kSuccess);
  failures_.keep({failure.qpn, is_receive, failure.id}, failure);
}

void Failures::keep_refusal(uint32_t qpn, uint32_t peer, const Reason& reason) {
  const std::lock_guard lock(mutex_);
  refusals_.keep({qpn, peer}, reason);
}

Reason Failures::take_refusal(uint32_t qpn, uint32_t peer) {
  const std::lock_guard lock(mutex_);
  return refusals_.take({qpn, peer}).value_or(Reason{});
}

std::optional<Failure> Failures::take(uint32_t qpn, bool is_receive, uint64_t id, roce::CompletionStatus status) {
  const std::lock_guard lock(mutex_);
  const Key key = {qpn, is_receive, id};
  const Failure* const failure = failures_.find(key);
  if (failure == nullptr || failure->status != status) return std::nullopt;
  assert(failure->qpn == qpn && failure->id == id);
  return failures_.take(key);
}

}  // namespace dapple::soft::explain
