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
  // As provider/soft/check/printed.hpp describes them.
  std::vector<nlohmann::json> reports;

  bool has_errors() const;
  // Reports have stacks, but no frame has a line.
  bool lacks_lines() const;
};

Findings read_findings(const char* file);

// One report on each line.
std::string as_json_lines(const Findings& findings);
// SARIF 2.1.0.
std::string as_sarif(const Findings& findings);
// A test case that fails for each error, and for a program that was not checked, or not as a whole.
std::string as_junit(const Findings& findings, const std::string& program);

}  // namespace dapple::run
