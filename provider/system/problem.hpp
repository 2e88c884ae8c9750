// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <errno.h>

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

// The end of a message about a system call that failed for lack of a descriptor; empty for any other errno.
inline const char* descriptor_remedy(int error) {
  if (error == EMFILE || error == ETOOMANYREFS) return "; raise ulimit -n";
  return error == ENFILE ? "; the system has too many open files" : "";
}

// The same for a new process or thread. ENOMEM: without memory for its stack.
inline const char* process_remedy(int error) {
  if (error == EAGAIN) return "; raise ulimit -u, or the limit of the container's processes";
  return error == ENOMEM ? "; raise ulimit -v" : "";
}

}  // namespace dapple::soft
