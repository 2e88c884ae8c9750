// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The program that is to run: where it is, and whether the system loads a library into it.
#ifndef DAPPLE_TOOLS_DAPPLE_RUN_PROGRAM_HPP
#define DAPPLE_TOOLS_DAPPLE_RUN_PROGRAM_HPP

#include <string>

namespace dapple::run {

struct Program {
  std::string path;
  bool has_thread_sanitizer = false;
};

// Looks for a name in PATH, and for a path as it is. Ends dapple-run with the line that says why if the program is not
// there, cannot be run, or gets no library from outside. `library` is one that is to be loaded: the program must be of
// its architecture.
Program find_program(const char* name, const std::string& library);

}  // namespace dapple::run

#endif  // DAPPLE_TOOLS_DAPPLE_RUN_PROGRAM_HPP
