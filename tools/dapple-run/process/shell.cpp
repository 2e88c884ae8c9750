// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/shell.hpp"

#include <stdio.h>
#include <stdlib.h>

namespace dapple::run {

void print_assignment(const char* variable) {
  const char* value = getenv(variable);
  if (value == nullptr) {
    printf("unset %s\n", variable);
    return;
  }
  printf("export %s='", variable);
  for (const char* each = value; *each != '\0'; ++each) {
    // Single quotes cannot contain a quote.
    if (*each == '\'') {
      fputs("'\\''", stdout);
    } else {
      putchar(*each);
    }
  }
  puts("'");
}

}  // namespace dapple::run
