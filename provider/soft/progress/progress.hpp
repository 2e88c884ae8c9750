// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Passes of work: packets that came, deadlines, queue pairs that wait for a turn. One thread at a time makes them: a
// thread of the program that polls an empty completion queue, or the background thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "provider/soft/links/links.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/progress/arrivals.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/scheduling/standby.hpp"
#include "provider/soft/scheduling/wakeup.hpp"
#include "provider/soft/transport/transports.hpp"
#include "provider/soft/wire/wire.hpp"

namespace dapple::soft {

// Internally locked.
class Progress {
 public:
  Progress(const QpTable& qps, Multicast& multicast, Wire& wire, Transports& transports, SlotCounters& counters,
           const Wakeup& wakeup)
      : wire_(&wire),
        links_(transports.links()),
        engines_(wire, transports.publication(), counters, wakeup),
        arrivals_(qps, multicast, engines_, counters, receive_mutex_) {}

  Engines& engines() { return engines_; }
  FrameTaker& frame_taker() { return arrivals_; }

  // The wire that packets come from. Another one replaces it while the caller has stop_receiving().
  Wire& wire() const { return *wire_.load(std::memory_order_acquire); }
  void receive_from(Wire& wire) {
    assert_held(receive_mutex_);
    wire_.store(&wire, std::memory_order_release);
  }

  // Called by a polling thread of the program: a pass, unless another thread makes one now.
  void poll();
  // Called by a thread of the program: processes all packets that have arrived, acknowledgements included.
  void catch_up();
  // Called by the background thread: a pass, unless another thread makes one now.
  Standby::Look look();

  // No packet is received while the caller has this.
  std::unique_lock<BiasedMutex> stop_receiving() { return std::unique_lock(receive_mutex_); }

  // Called by the background thread around its sleep, so that peers of this host wake it. before_sleep() sets `awake`
  // if there is something to do now. It returns false if another thread makes a pass: it takes packets of this host,
  // too.
  bool before_sleep(bool& awake);
  // event: the links have one. True if packets of this host may be there.
  bool after_sleep(bool event, bool for_packets);
  // Another thread is about to look after the links' events.
  bool leaves_links_to_poller() const { return links_due_.load(std::memory_order_relaxed); }

 private:
  // True if there was work.
  bool pass(Worker worker);
  void send_held(roce::Owes least);
  void attend_links();
  bool look_after_links();
  bool receive_packets(Worker worker);
  bool expire_due();
  bool run_ready();

  std::atomic<Wire*> wire_;  // changes under the lock of receiving
  SameHostLinks& links_;
  Engines engines_;
  BiasedMutex receive_mutex_{LockRank::kReceiving};
  Arrivals arrivals_;
  uint32_t same_host_passes_ = 0;       // passes in which packets of this host are more likely than others
  uint32_t unlooked_passes_ = 0;        // since the last look at the network
  std::atomic<bool> links_due_{false};  // links_ has an event to look after
};

}  // namespace dapple::soft
