// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Members of dappled for its tests.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "provider/member/daemon_link.hpp"

namespace dapple::tests {

// Aborts if dappled does not tell its status.
soft::StatusReply status_of(soft::DaemonLink& link);

// A connection to dappled, and its slot. Null, and a line on standard error, if there is none.
std::unique_ptr<soft::DaemonLink> link_with_slot(soft::Slot& slot);

// A process with a slot. It passes the numbers that arrive at its slot on to the test, and reconnects to dappled.
struct Member {
  pid_t process = -1;
  int from = -1;
  uint32_t slot = 0;

  ~Member() { end(); }
  bool start();
  // The next number that has arrived; false if none arrives within `wait` milliseconds.
  bool next(uint32_t& number, int wait = 20000) const;
  // Sends a number to the slot, and tells whether it arrives.
  bool hears(uint32_t number, bool ipv6 = false) const;
  void end(int number = SIGKILL);
};

}  // namespace dapple::tests
