// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The workers' processes: starts them, again if they were killed, and notices those that fail or hang.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/soak/flatness.hpp"
#include "tests/soak/news.hpp"
#include "tests/soak/plan.hpp"

namespace dapple::soak {

class Crew {
 public:
  // logs: a folder for the workers' logs. work: an empty folder that must stay empty.
  Crew(const std::vector<PairPlan>& plans, Shared& shared, std::string logs, std::string work, uint64_t window_ms);

  // Starts absent workers, reaps ended ones, and looks for hangs and growth. Reports failures.
  void tend();
  // False if that worker is absent at the moment.
  bool kill_worker(uint32_t pair, uint32_t worker);
  uint32_t living() const;
  uint32_t killed() const { return killed_; }
  uint32_t windows() const;  // of flat sizes

 private:
  struct Process {
    pid_t id = 0;  // 0: absent
    uint32_t life = 0;
    bool killed = false;
    uint64_t steps = 0, moved_ms = 0;
    uint64_t rests = 0;
    Flatness flatness;
  };
  struct Pair {
    Process ends[2];
    uint64_t whole = 0, whole_ms = 0;
  };

  void start(uint32_t pair, uint32_t worker);
  void reap();
  void ended(uint32_t pair, uint32_t worker, int status);
  void look_after(uint32_t pair, uint32_t worker);
  void look_after(uint32_t pair);
  void fail(uint32_t pair, uint32_t worker, const std::string& expected);
  std::string log_of(uint32_t pair, uint32_t worker) const;

  const std::vector<PairPlan>& plans_;
  Shared& shared_;
  const std::string logs_, work_;
  std::vector<Pair> pairs_;
  uint32_t killed_ = 0;
};

}  // namespace dapple::soak
