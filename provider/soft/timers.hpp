// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// When the queue pairs of this process want to be looked at.
//
// A queue pair's deadline changes with almost every call, so its place in the heap only ever moves forward in time on
// the data path; a deadline that has moved back is found out when the old one comes.
#ifndef DAPPLE_PROVIDER_SOFT_TIMERS_HPP
#define DAPPLE_PROVIDER_SOFT_TIMERS_HPP

#include <stdint.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "provider/soft/objects.hpp"

namespace dapple::soft {

// Internally locked.
class Timers {
 public:
  // Room for one queue pair more. False without memory.
  bool make_room();
  // A queue pair fewer. It is not looked at any more.
  void remove(Qp& qp);

  // Under the queue pair's lock. True if it has become the earliest of all.
  bool schedule(Qp& qp, roce::Time deadline);
  // A queue pair whose time has come, out of the heap and pinned; or null.
  Qp* pop_due(roce::Time now);
  roce::Time earliest() const { return earliest_.load(); }

 private:
  bool before(uint32_t a, uint32_t b) const;
  void place(uint32_t at, Qp* qp);
  void rise(uint32_t at);
  void sink(uint32_t at);
  void take_out(uint32_t at);
  void publish();

  std::mutex mutex_;
  std::unique_ptr<Qp*[]> heap_;
  uint32_t size_ = 0;
  uint32_t room_ = 0;
  uint32_t members_ = 0;
  std::atomic<roce::Time> earliest_{roce::kNever};
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_TIMERS_HPP
