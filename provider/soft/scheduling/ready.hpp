// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The queue pairs that wait for a turn to send, the longest waiting first. Each is in the list at most once, and pinned
// as long as it is there.
#pragma once

#include <atomic>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// Internally locked; the lock is a leaf.
class Ready {
 public:
  // Under the queue pair's lock. False if it waits already.
  bool add(Qp& qp);
  // The queue pair ends: nobody adds it any more.
  void forget(Qp& qp);
  bool any() const { return any_.load(); }
  // Takes the first one out; null if there is none. The caller calls began() under its lock, and unpins it at the end.
  // `last`: null, or the queue pair that was the last one at the first call. The call sets it.
  Qp* take(const Qp*& last);
  // Under the queue pair's lock: its turn begins, so it may wait for another one.
  static void began(Qp& qp);

 private:
  Mutex mutex_{LockRank::kReady};
  Qp* first_ = nullptr;
  Qp* last_ = nullptr;
  std::atomic<bool> any_{false};
};

}  // namespace dapple::soft
