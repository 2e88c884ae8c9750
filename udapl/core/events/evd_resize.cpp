// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <cassert>
#include <cerrno>

#include "udapl/core/events/evd.hpp"

namespace dapple::udapl {

// The CQ keeps its identity when it is resized, so queue pairs continue to report to it.
Result<> Evd::resize(uint32_t min_qlen) {
  std::lock_guard guard(data_mutex_);
  if (cq_) {
    while (complete_batch()) {
    }
  }
  if (available() > min_qlen) return fail(Type::kInvalidState);
  std::vector<Event> room(has_software_events() ? min_qlen : 0);
  const int before = cq_ ? cq_->cqe : 0;
  const int32_t spare_before = cq_ ? spare_for(*cq_, qlen()) : 0;
  if (cq_) {
    if (auto resized = resize_cq(min_qlen); !resized) return resized;
  }
  // Only events made by software can have arrived meanwhile.
  if (!software_.resize(room)) {
    if (cq_) ibv_resize_cq(cq_.get(), before);
    return fail(Type::kInvalidState);
  }
  if (cq_) spare_.fetch_add(spare_for(*cq_, min_qlen) - spare_before, std::memory_order_relaxed);
  assert(!has_software_events() || software_.capacity() == min_qlen);
  qlen_.store(min_qlen, std::memory_order_relaxed);
  return {};
}

Result<> Evd::resize_cq(uint32_t min_qlen) {
  const int before = cq_->cqe;
  if (int error = ibv_resize_cq(cq_.get(), entries_for(min_qlen))) {
    if (error < 0) error = errno;
    const bool fits = before >= entries_for(min_qlen);
    // Some devices cannot resize, and none shrinks below the number of completions that arrived since the look above.
    if (error == ENOSYS || error == EOPNOTSUPP) {
      if (!fits) return fail(Type::kModelNotSupported);
    } else {
      return fits && error == EINVAL ? fail(Type::kInvalidState) : fail_errno(error);
    }
  }
  return {};
}

Result<> Evd::make_room_to_flush(uint32_t num_requests) {
  std::lock_guard guard(data_mutex_);
  to_flush_.fetch_add(num_requests, std::memory_order_relaxed);
  if (cq_->cqe >= entries_for(qlen())) return {};
  const int error = ibv_resize_cq(cq_.get(), entries_for(qlen()));
  const int reason = error < 0 ? errno : error;
  if (reason == 0 || reason == ENOSYS || reason == EOPNOTSUPP) return {};
  give_back_room_to_flush(num_requests);
  return fail_errno(reason);
}

}  // namespace dapple::udapl
