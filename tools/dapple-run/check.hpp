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
};

// Returns dapple-run's exit code: the child's, or the one for findings. `program`: its name, for people. `emulate`: the
// child has the emulator, too.
int run_with_check(const ReportFiles& files, const std::string& program, bool emulate, void (*execute)(void* argument),
                   void* argument);

}  // namespace dapple::run
