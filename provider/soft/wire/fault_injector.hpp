// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Loses, damages, repeats and delays the packets that arrive, as DAPPLE_FAULTS says. It stands between the socket and
// the check of the ICRC. For one thread at a time.
#pragma once

#include <memory>

#include "provider/protocol/wire_counters.hpp"
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/wire/datagram.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

class FaultInjector {
 public:
  // Null on failure, and `problem` has the reason. The socket and the counters outlive it.
  static std::unique_ptr<FaultInjector> create(const FaultSettings& settings, int socket, WireCounters& counters,
                                               Problem& problem);

  // Readable when a packet waits at the socket, or a delayed one is due.
  int poll_fd() const { return poll_.get(); }
  void pass(DatagramOrigin& origin, std::span<std::byte> packet, DatagramSink& sink);
  void pass_due(DatagramSink& sink);

 private:
  FaultInjector(const FaultSettings& settings, WireCounters& counters) : source_(settings), counters_(counters) {}
  // For dapple-run's missed=.
  static void note(const Fate& fate);
  void set_timer();

  FaultSource source_;
  WireCounters& counters_;
  std::unique_ptr<DelayQueue> delayed_;
  OwnedFd timer_;
  OwnedFd poll_;  // the socket and the timer
};

}  // namespace dapple::soft
