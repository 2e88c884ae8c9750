// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The deadlines of the queue pairs of this process.
//
// A queue pair's deadline changes with almost every call, so the data path only moves its place in the heap to earlier
// times. A deadline that has moved to a later time is corrected when the old deadline comes.
#pragma once

#include <stdint.h>

#include <atomic>
#include <memory>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// Internally locked.
class Timers {
 public:
  // Makes room for one more queue pair. False without memory.
  bool make_room();
  // Removes a queue pair, which is not used any more.
  void remove(Qp& qp);

  // Under the queue pair's lock. True if it has become the earliest of all.
  bool schedule(Qp& qp, roce::Time deadline);
  // Takes a queue pair whose deadline has come out of the heap, and pins it; or null.
  Qp* pop_due(roce::Time now);
  roce::Time earliest() const { return earliest_.load(); }

 private:
  bool before(uint32_t a, uint32_t b) const;
  void place(uint32_t at, Qp* qp);
  void rise(uint32_t at);
  void sink(uint32_t at);
  void take_out(uint32_t at);
  void publish();

  Mutex mutex_{LockRank::kTimers};
  std::unique_ptr<Qp*[]> heap_;
  uint32_t size_ = 0;
  uint32_t room_ = 0;
  uint32_t members_ = 0;
  std::atomic<roce::Time> earliest_{roce::kNever};
};

}  // namespace dapple::soft
