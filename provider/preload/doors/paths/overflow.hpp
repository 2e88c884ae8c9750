// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {

// For the functions that a program built with _FORTIFY_SOURCE calls with the size of its buffer.
[[noreturn]] inline void stop_overflow() {
  static const char line[] = "dapple: the program gives the C library a buffer that is too small\n";
  real.write(STDERR_FILENO, line, sizeof line - 1);
  abort();
}

}  // namespace dapple::doors
