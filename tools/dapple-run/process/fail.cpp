// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/fail.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

namespace dapple::run {
namespace {

[[gnu::format(printf, 1, 0)]] void print(const char* format, va_list arguments) {
  fputs("dapple-run: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
}

void fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments);
  va_end(arguments);
  exit(code);
}

}  // namespace dapple::run
