// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/log.hpp"

#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace dapple::udapl {
namespace {

constexpr unsigned long kStderr = 1;
constexpr unsigned long kSyslog = 2;

unsigned long sum_in(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoul(text, nullptr, 0) : otherwise;
}

[[gnu::format(printf, 1, 0)]] void write_line(const char* format, va_list args) {
  char line[512] = "dapple: ";
  constexpr int kPrefix = sizeof "dapple: " - 1;
  const int wanted = std::vsnprintf(line + kPrefix, sizeof line - kPrefix - 1, format, args);
  const int size = kPrefix + std::clamp(wanted, 0, static_cast<int>(sizeof line) - kPrefix - 2);
  const unsigned long destinations = sum_in("DAPL_DBG_DEST", kStderr);
  if (destinations & kSyslog) ::syslog(LOG_USER | LOG_WARNING, "%.*s", size, line);
  if (!(destinations & kStderr)) return;
  line[size] = '\n';
  // The line is written in one call, so that lines of several threads and processes do not mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<size_t>(size) + 1);
}

}  // namespace

bool log_wants(unsigned types) {
  return (sum_in("DAPL_DBG_TYPE", kLogErrors) & types) != 0;
}

void log(unsigned types, const char* format, ...) {
  if (!log_wants(types)) return;
  va_list args;
  va_start(args, format);
  write_line(format, args);
  va_end(args);
}

void log_error(const char* format, ...) {
  if (!log_wants(kLogErrors)) return;
  va_list args;
  va_start(args, format);
  write_line(format, args);
  va_end(args);
}

}  // namespace dapple::udapl
