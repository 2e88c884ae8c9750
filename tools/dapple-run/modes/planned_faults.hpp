// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Faults that DAPPLE_FAULTS plans: whether they are well-formed, and which of them have not come true.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "provider/soft/faults/fault_points.hpp"
#include "tools/dapple-run/process/memory_file.hpp"

namespace dapple::run {

// Ends dapple-run with one line if a word is malformed. `from`: the option or the variable, for that line.
void check_faults(const char* from, const char* words);

// The planned faults of this environment. The programs write down what has come true.
class PlannedFaults {
 public:
  PlannedFaults();

  // False if only packets and bytes have faults, and the plan does not ask which of them have come.
  bool any() const { return !words_.empty() || !limit_.empty() || !disturbances_.empty(); }
  // One line on standard error for each fault that has not come true. `status`: the program's exit code. Returns
  // dapple-run's.
  int say_missed(int status) const;

 private:
  std::vector<std::string> words_;
  std::string limit_;                      // the word registered=
  std::vector<std::string> disturbances_;  // arm=, drop= and the like, if the plan has missed=
  int missed_code_ = 0;
  std::optional<MemoryFile> file_;  // if there are any
  const soft::FaultNotes* notes_ = nullptr;
};

}  // namespace dapple::run
