// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Watches dappled for a test that kills processes: its state, its size, and its death.
#pragma once

#include <memory>

#include "provider/member/daemon_link.hpp"

namespace dapple::tests {

class Watcher {
 public:
  // False if no dappled answers at this moment.
  bool status(soft::StatusReply& status);
  // Notes dappled's memory and descriptors.
  void measure(pid_t dappled);
  // Measures it, then kills it. False if there is none.
  bool kill_dappled();
  // Disconnects, so that dappled may end.
  void close() { link_.reset(); }

  long most_kib() const { return most_kib_; }
  long most_descriptors() const { return most_descriptors_; }
  // Prints the figures. False if they exceed dappled's limits.
  bool report() const;

 private:
  std::unique_ptr<soft::DaemonLink> link_;
  long most_kib_ = 0, most_descriptors_ = 0;
};

// Read from /proc; 0 if the process is gone.
long resident_kib(pid_t process);
long descriptors_of(pid_t process);

}  // namespace dapple::tests
