// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The completion queues whose next event waits for more completions or for the end of a period (ibv_modify_cq()), and
// the ends of these periods.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/clock.hpp"

namespace dapple::soft {

// Internally locked.
class HeldEvents {
 public:
  // The event of a queue waits until `end`. If one waits already, the earlier end counts.
  void add(Cq& cq, roce::Time end) {
    const std::lock_guard lock(mutex_);
    if (!cq.holds_event) {
      cq.holds_event = true;
      cq.hold_end = end;
      cq.next_held = first_;
      first_ = &cq;
    }
    cq.hold_end = std::min(cq.hold_end, end);
    publish();
  }
  // The queue is not used any more. No raise() for it is in progress afterwards.
  void remove(Cq& cq) {
    const std::lock_guard lock(mutex_);
    for (Cq** at = &first_; *at != nullptr; at = &(*at)->next_held) {
      if (*at != &cq) continue;
      take_out(at);
      break;
    }
    publish();
    assert(!cq.holds_event);
  }
  // The same for all queues that the program has left in a device that it closes.
  void forget(const Context& context) {
    const std::lock_guard lock(mutex_);
    for (Cq** at = &first_; *at != nullptr;) {
      if ((*at)->context == &context) {
        take_out(at);
      } else {
        at = &(*at)->next_held;
      }
    }
    publish();
  }

  // Calls raise() under the lock for each queue whose period is over.
  template <typename Raise>
  void expire(roce::Time now, Raise raise) {
    const std::lock_guard lock(mutex_);
    for (Cq** at = &first_; *at != nullptr;) {
      if ((*at)->hold_end > now) {
        at = &(*at)->next_held;
        continue;
      }
      Cq& due = take_out(at);
      if (due.queue.end_hold()) raise(due);
    }
    publish();
  }
  roce::Time earliest() const { return earliest_.load(); }

 private:
  Cq& take_out(Cq** at) {
    Cq& cq = **at;
    assert(cq.holds_event);
    *at = cq.next_held;
    cq.next_held = nullptr;
    cq.holds_event = false;
    return cq;
  }
  void publish() {
    roce::Time earliest = roce::kNever;
    for (const Cq* cq = first_; cq != nullptr; cq = cq->next_held) earliest = std::min(earliest, cq->hold_end);
    earliest_.store(earliest);
  }

  Mutex mutex_{LockRank::kHeldEvents};
  Cq* first_ = nullptr;
  std::atomic<roce::Time> earliest_{roce::kNever};
};

}  // namespace dapple::soft
