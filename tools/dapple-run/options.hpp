// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The words of dapple-run's command line.
#pragma once

#include <string>
#include <vector>

#include "tools/dapple-run/modes/check.hpp"
#include "tools/dapple-run/modes/enumerate.hpp"

namespace dapple::run {

struct Options {
  std::string verbose = "0";
  std::string emulate = "0";
  bool device = true;
  bool print_environment = false;
  bool doctor = false;
  bool doctor_device = false;  // the last line of the doctor alone
  bool enumerate = false;
  bool check = false;
  bool explain = false;  // without the rest of the check
  double hang = 0;       // seconds without progress after which the program hangs; 0: no limit
  bool as = false;
  bool mount = false;
  bool alone = false;
  std::vector<const char*> variables;  // set by options, for --env
  ReportFiles reports;
  EnumerateOptions runs;
  char** command = nullptr;  // the program and its arguments; null with --env and --doctor
};

// Reads the words after the program's name, and sets the variables that belong to the options. Parsing stops at the
// name of the program to run; that program's own options are left alone. Prints --help and --version and ends the
// process. A wrong word ends it with one line and kWrongUse.
Options parse(char** words);

}  // namespace dapple::run
