// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The records of a checked program's processes, and their formats.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dapple::run {

struct Findings {
  bool attached = false;  // a process has opened a software device
  bool complete = true;   // no process is missing from the emulation
  int exit_code = 0;      // for errors, by the options of the processes
  int status = 0;         // the program's exit code, or 128 plus the number of the signal that has ended it
  // As provider/soft/check/reports/printed.hpp describes them.
  std::vector<nlohmann::json> reports;

  std::vector<std::string> kept;  // their texts, if they are not on dapple-run's own standard error

  bool has_errors() const;
  // Reports have stacks, but no frame has a line.
  bool lacks_lines() const;
};

Findings read_findings(const char* file);

// One report on each line.
std::string as_json_lines(const Findings& findings);
// SARIF 2.1.0.
std::string as_sarif(const Findings& findings);
// How the program has ended, as for a shell: "exit code 3", "Segmentation fault (139)".
std::string ending_of(int status);
// A test case that fails for each error, and for a program that has failed itself, was not checked, or not as a whole.
std::string as_junit(const Findings& findings, const std::string& program);

}  // namespace dapple::run
