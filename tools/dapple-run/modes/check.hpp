// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run --check: runs a program whose processes record the mistakes that they make with the software devices.
#pragma once

#include <string>

namespace dapple::run {

// Names of files for the findings; empty: none.
struct ReportFiles {
  std::string json, sarif, junit;

  bool empty() const { return json.empty() && sarif.empty() && junit.empty(); }
  bool has_one_name_twice() const {
    return (!json.empty() && (json == sarif || json == junit)) || (!sarif.empty() && sarif == junit);
  }
};

struct CheckedRun {
  std::string program;     // its name, for people
  bool emulate = false;    // the child has the emulator, too
  bool is_checked = true;  // otherwise only its failures or hangs are explained
  double hang = 0;         // seconds after which the program hangs; 0: never
};

// Returns dapple-run's exit code: the child's, or the one for findings or a hang.
int run_with_check(const ReportFiles& files, const CheckedRun& run, void (*execute)(void* argument), void* argument);

}  // namespace dapple::run
