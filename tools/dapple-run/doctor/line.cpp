// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/line.hpp"

#include <stdio.h>

namespace dapple::run::doctor {

void print(const Line& line) {
  constexpr const char* kWords[] = {"works", "partly", "FAILS"};
  printf("%-6s  %-13s  %s\n", kWords[static_cast<int>(line.verdict)], line.subject.c_str(), line.text.c_str());
  fflush(stdout);
}

}  // namespace dapple::run::doctor
