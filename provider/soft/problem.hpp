// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_PROBLEM_HPP
#define DAPPLE_PROVIDER_SOFT_PROBLEM_HPP

#include <cstdarg>
#include <cstdio>

namespace dapple::soft {

// The reason of a failure: an errno, and one line for people with the remedy.
struct Problem {
  int error = 0;
  char line[240] = "";

  __attribute__((format(printf, 3, 4))) void set(int code, const char* format, ...) {
    error = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
  }
  void clear() {
    error = 0;
    line[0] = '\0';
  }
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_PROBLEM_HPP
