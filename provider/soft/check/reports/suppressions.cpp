// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/suppressions.hpp"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string_view>

#include "provider/soft/check/reports/kinds.hpp"

namespace dapple::soft::check {
namespace {

bool fits(const std::string& pattern, const std::string& text) {
  return !text.empty() && fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool fits(const std::string& pattern, const Frame& frame) {
  return fits(pattern, frame.function) || fits(pattern, frame.module.substr(frame.module.rfind('/') + 1));
}

}  // namespace

bool Suppressions::read(const std::string& file, std::string& error) {
  const std::unique_ptr<FILE, int (*)(FILE*)> input(fopen(file.c_str(), "re"), fclose);
  if (input == nullptr) {
    error = "suppressions=" + file + ": " + strerror(errno);
    return false;
  }
  struct Room {
    ~Room() { free(bytes); }
    char* bytes = nullptr;
    size_t size = 0;
  } line;
  while (getline(&line.bytes, &line.size, input.get()) >= 0) {
    std::string_view text = line.bytes;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    if (text.empty() || text.front() == '#') continue;
    const size_t colon = text.find(':');
    if (colon == 0 || colon == text.npos || colon + 1 == text.size()) {
      error = "suppressions=" + file + ": expected KIND:PATTERN instead of " + std::string(text);
      return false;
    }
    const std::string_view kind = text.substr(0, colon);
    if (kind != "*" && !is_kind(kind)) {
      error = "suppressions=" + file + ": " + std::string(kind) + " is no kind of report; dapple-check(1) lists them";
      return false;
    }
    lines_.push_back({std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))});
  }
  return true;
}

bool Suppressions::match(const Report& report, const std::vector<NamedStack>& places) const {
  for (const Line& line : lines_) {
    if (line.kind != "*" && line.kind != report.kind) continue;
    for (const NamedStack& place : places) {
      for (const Frame& frame : place.frames) {
        if (fits(line.pattern, frame)) return true;
      }
    }
  }
  return false;
}

}  // namespace dapple::soft::check
