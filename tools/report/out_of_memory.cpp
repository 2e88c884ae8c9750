// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/report/out_of_memory.hpp"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <new>

namespace dapple {
namespace {

int exit_code;

[[noreturn]] void end() {
  dprintf(STDERR_FILENO, "%s: no memory is left: see ulimit -v\n", program_invocation_short_name);
  _exit(exit_code);
}

}  // namespace

void end_when_out_of_memory(int code) {
  exit_code = code;
  std::set_new_handler(end);
}

}  // namespace dapple
