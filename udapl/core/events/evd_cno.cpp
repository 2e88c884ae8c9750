// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An EVD and its CNO. While the EVD is enabled and no thread waits on it, its CQ is armed and its channel is in the
// CNO's set. A thread that takes a notification from the channel arms the CQ again before it notifies the CNO. So every
// completion either came before the CNO's notification or notifies again.
#include <cassert>
#include <cerrno>
#include <utility>

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/core/events/cno.hpp"
#include "udapl/core/events/evd.hpp"

namespace dapple::udapl {

Result<> Evd::set_cno(Cno* cno) {
  std::unique_lock lock(cno_mutex_);
  Cno* const before = cno_.load(std::memory_order_relaxed);
  if (cno == before) return {};
  if (before && enabled_) before->notifier()->unwatch(*this, channel_fd());
  if (cno && enabled_) {
    if (auto watched = cno->notifier()->watch(*this, channel_fd()); !watched) {
      if (before) {
        (void)before->notifier()->watch(*this, channel_fd());  // a moment ago it had room for this EVD
        notify_cno_of_more_than(0);
      }
      return watched;
    }
  }
  if (cno) {
    cno->notifier()->add_user();
    cno->acquire();
  }
  if (before) {
    before->notifier()->drop_user(false);
    before->release();
  }
  cno_.store(cno, std::memory_order_seq_cst);
  if (cno && enabled_) notify_cno_of_more_than(0);
  return {};
}

void Evd::leave_cno() {
  std::unique_lock lock(cno_mutex_);
  Cno* const cno = cno_.load(std::memory_order_relaxed);
  if (!cno) return;
  if (enabled_) cno->notifier()->unwatch(*this, channel_fd());
  cno->notifier()->drop_user(true);
  cno->release();
  cno_.store(nullptr, std::memory_order_seq_cst);
}

Result<> Evd::set_enabled(bool enabled) {
  std::unique_lock lock(cno_mutex_);
  if (enabled == enabled_) return {};
  if (Cno* const cno = cno_.load(std::memory_order_relaxed)) {
    if (!enabled) {
      cno->notifier()->unwatch(*this, channel_fd());
    } else if (auto watched = cno->notifier()->watch(*this, channel_fd()); !watched) {
      return watched;
    }
  }
  enabled_ = enabled;
  if (enabled) notify_cno_of_more_than(0);
  return {};
}

bool Evd::enabled() const {
  std::lock_guard lock(cno_mutex_);
  return enabled_;
}

void Evd::trigger_cno() {
  std::lock_guard lock(cno_mutex_);
  Cno* const cno = cno_.load(std::memory_order_relaxed);
  if (cno && enabled_) cno->notifier()->trigger(*this);
}

void Evd::resume_cno(uint32_t known) {
  const NoCancel until_told;  // a destructor may call this
  std::lock_guard lock(cno_mutex_);
  if (enabled_) notify_cno_of_more_than(known);
}

// Arms the CQ, then looks: an event that came before the arming makes no other notification. The caller holds
// cno_mutex_.
void Evd::notify_cno_of_more_than(uint32_t known) {
  Cno* const cno = cno_.load(std::memory_order_relaxed);
  if (!cno) return;
  bool more = false;
  {
    std::lock_guard guard(data_mutex_);
    if (cq_ && request_notification()) break_cq();
    if (software_.urgent()) flush_rings();
    while (available() <= known && complete_batch()) {
    }
    more = available() > known || cq_broken();  // a caller that asks the EVD gets the error
  }
  if (more) cno->notifier()->trigger(*this);
}

bool Evd::serve_channel() {
  assert(channel_ && cq_);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  unsigned int notifications = 0;
  while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) ++notifications;
  const bool lost = !found_nothing(errno);
  if (lost) break_cq();
  if (notifications == 0 && !lost) return false;
  counters_.add_shared(EvdCounter::kDtoCallback, notifications);
  ibv_ack_cq_events(cq_.get(), notifications);
  if (waited_on()) {
    // A thread that waits here takes precedence over the CNO, and arms the CQ itself.
    wake();
    return false;
  }
  return arm_for_cno();
}

void Evd::on_notification() {
  counters_.add_shared(EvdCounter::kDtoCallback);
  serve_notification();
}

// Has a thread that waits, or the CNO, arm the CQ again and look at it.
void Evd::serve_notification() {
  if (waited_on()) return wake();
  std::lock_guard lock(cno_mutex_);
  Cno* const cno = cno_.load(std::memory_order_relaxed);
  if (cno && enabled_ && arm_for_cno()) cno->notifier()->trigger(*this);
}

void Evd::on_lost_channel() {
  if (!cq_ || channel_) return;
  break_cq();
  wake();
  trigger_cno();
}

// Called after a notification. True if the CNO must report the new events.
bool Evd::arm_for_cno() {
  assert(cq_);
  if (request_notification()) break_cq();
  if (cq_broken()) return true;
  std::lock_guard guard(data_mutex_);
  // Completions that other threads took from the CQ also count in signals_, and may already be delivered.
  while ((available() == 0 || signals_ == cno_signals_) && complete_batch()) {
  }
  return (std::exchange(cno_signals_, signals_) != signals_ && available() > 0) || cq_broken();
}

}  // namespace dapple::udapl
