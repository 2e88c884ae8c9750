// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "tools/perf/common/clock.hpp"

namespace dapple::perf {

// A line on standard error, if that is a terminal, with the progress of a long run; it disappears at the end.
class Progress {
 public:
  Progress(uint64_t size, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done: finished rounds. Cheap: most calls do not read the clock, except in runs that call it rarely.
  void at(uint64_t done) {
    if (wanted_ && (done & skipped_) == 0) show(done);
  }

 private:
  void show(uint64_t done);

  uint64_t size_;
  uint64_t total_;
  uint64_t skipped_;  // all bits below a power of two
  bool wanted_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace dapple::perf
