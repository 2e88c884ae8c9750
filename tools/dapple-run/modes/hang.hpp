// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run --hang: decides whether the program hangs, and lets its processes explain that.
#pragma once

#include <cstdint>

#include "provider/member/hang_watch.hpp"
#include "tools/dapple-run/process/memory_file.hpp"

namespace dapple::run {

// The environment variable that names the file of the reports, of a program that is not checked otherwise.
inline constexpr char kHangRecords[] = "DAPPLE_HANG_RECORDS";

// The processes that are started while it exists tell it of their progress.
class HangJudge {
 public:
  HangJudge();
  ~HangJudge();

  // True if no process has made progress for this time, and one watches.
  bool finds_hang(double seconds) const;
  // Returns when each process has explained what its threads wait for, or after some seconds. No process waits then.
  void explain();
  // Prints what they have said.
  void print_explanations() const;
  // Lets these processes end.
  void end() { watch_.end.store(1); }

 private:
  const MemoryFile file_{"dapple-hang", sizeof(soft::HangWatch)};
  soft::HangWatch& watch_;
};

// run_child() with such a judge: a program that hangs explains itself and ends. `hangs` tells whether it did.
int run_watched_child(double seconds, bool& hangs, void (*execute)(void* argument), void* argument);

}  // namespace dapple::run
