// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The lines of DAPPLE_TRACE, and those of dapple-run --json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/report/json.hpp"

namespace dapple::picture {

struct TraceLine {
  int64_t time_ns = 0;  // since 1970; 0 if the line has no time
  Json members;

  // The member as text or number; nothing of another type. Numbers in texts are hexadecimal, as the trace has them.
  std::string text(const char* name) const;
  uint64_t number(const char* name) const;
  bool has(const char* name) const { return members.contains(name); }
};

// In the order of their times. A part of a line at the end of the file, which a killed process leaves, is left out.
// Throws std::runtime_error with one line if the file cannot be read, or if another line is no object.
std::vector<TraceLine> read_trace_lines(const std::string& path);

}  // namespace dapple::picture
