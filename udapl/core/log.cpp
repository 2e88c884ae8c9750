// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/log.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace dapple::dat {
namespace {

bool errors_wanted() {
  const char* type = std::getenv("DAPL_DBG_TYPE");
  constexpr unsigned long kErrorBit = 1;
  return !type || (std::strtoul(type, nullptr, 0) & kErrorBit);
}

}  // namespace

void log_error(const char* format, ...) {
  if (!errors_wanted()) return;
  char line[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof line, format, args);
  va_end(args);
  std::fprintf(stderr, "dapple: %s\n", line);
}

}  // namespace dapple::dat
