// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>

#include "tools/perf/clock.hpp"

namespace dapple::perf {

// A line on standard error, if that is a terminal, that says how far a long run has come; it disappears at the end.
class Progress {
 public:
  Progress(std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: looks at the clock at every 64th.
  void at(uint64_t done) {
    if (wanted_ && done % 64 == 0) show(done);
  }

 private:
  void show(uint64_t done);

  std::string what_;
  uint64_t total_;
  bool wanted_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace dapple::perf
