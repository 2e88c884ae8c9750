// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The program to run: its path, and whether the system loads a library into it.
#pragma once

#include <string>

namespace dapple::run {

struct Program {
  std::string path;
  bool has_address_sanitizer = false;
  bool has_thread_sanitizer = false;
  bool has_usual_loader = true;      // the loader of dapple-run itself, or it is not known
  bool has_own_heap = false;         // the heap of any sanitizer, these two included
  bool has_other_c_library = false;  // than the GNU one
  std::string obstacle;              // the line that tells why no library can be loaded into it; empty: one can
};

// Finds the first word of a command, which ends with a null: searches PATH for a name, and uses a path unchanged. Ends
// dapple-run with one line with the reason, and with what to type if that is known, if the program does not exist,
// cannot be run, or ignores LD_PRELOAD for lack of rights. `library` will be loaded: the program must have its
// architecture.
Program find_program(const char* const* command, const std::string& library);

}  // namespace dapple::run
