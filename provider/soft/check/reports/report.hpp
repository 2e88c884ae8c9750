// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

enum class Level { kError, kWarning, kNote };

// "error", "warning", "note".
const char* name_of(Level level);

// A finding.
struct Report {
  Level level = Level::kError;
  const char* kind = "";  // for suppressions and machines, such as "deregistered-key"
  std::string text;       // one sentence, with the objects
  std::string remedy;
  std::vector<ReportedStack> places;
};

__attribute__((format(printf, 1, 2))) std::string format(const char* format, ...);
// An argument for %llu and %llx.
constexpr unsigned long long number(uint64_t value) {
  return value;
}

}  // namespace dapple::soft::check
