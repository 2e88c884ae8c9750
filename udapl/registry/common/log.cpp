// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/common/log.hpp"

#include <syslog.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace dapple::registry {
namespace {

constexpr unsigned kDestStderr = 1;
constexpr unsigned kDestSyslog = 2;
constexpr std::size_t kMaxLine = 1024;
constexpr std::size_t kMaxQuoted = 64;

struct Settings {
  unsigned types = static_cast<unsigned>(LogType::kError);
  unsigned destinations = kDestStderr;

  Settings() noexcept {
    if (const char* text = std::getenv("DAT_DBG_TYPE")) types = static_cast<unsigned>(std::strtoul(text, nullptr, 0));
    if (const char* text = std::getenv("DAT_DBG_DEST"))
      destinations = static_cast<unsigned>(std::strtoul(text, nullptr, 0));
  }
};

const Settings& settings() noexcept {
  static const Settings read_once;
  return read_once;
}

}  // namespace

bool log_wants(LogType type) noexcept {
  return (settings().types & static_cast<unsigned>(type)) != 0;
}

void log(LogType type, std::string_view line) noexcept {
  if (!log_wants(type)) return;
  const int length = static_cast<int>(line.size());
  if (settings().destinations & kDestStderr) {
    char buffer[kMaxLine];
    int used = std::snprintf(buffer, sizeof buffer, "dat: %.*s\n", length, line.data());
    if (used >= static_cast<int>(sizeof buffer)) {
      used = sizeof buffer;
      buffer[sizeof buffer - 1] = '\n';
    }
    // The line is written in one call that bypasses stdio's buffer, so that lines of several threads and processes do
    // not mix.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, buffer, static_cast<std::size_t>(used));
  }
  if (settings().destinations & kDestSyslog) ::syslog(LOG_USER | LOG_DEBUG, "dat: %.*s", length, line.data());
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  if (text.size() > kMaxQuoted) out += "...";
  return out + '"';
}

}  // namespace dapple::registry
