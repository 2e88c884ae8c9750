// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/report.hpp"

#include <stdarg.h>
#include <stdio.h>

namespace dapple::soft::check {

const char* name_of(Level level) {
  return level == Level::kError ? "error" : level == Level::kWarning ? "warning" : "note";
}

std::string format(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace dapple::soft::check
