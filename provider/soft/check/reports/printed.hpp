// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A report with the names of its frames, as text for people and as a line of JSON for dapple-run.
#pragma once

#include <time.h>

#include <string>
#include <string_view>
#include <vector>

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/check/reports/symbols.hpp"

namespace dapple::soft::check {

struct NamedStack {
  const char* title;
  std::vector<Frame> frames;
};

// `callers`: those of each place.
std::vector<NamedStack> named(const std::vector<ReportedStack>& places, const std::vector<Callers>& callers);

std::string as_text(const Report& report, const std::vector<NamedStack>& places);
// {"time", "kind", "level", "program", "process", "text", "remedy", "places": [{"title", "frames": [{"module",
// "offset", "function", "source", "line"}]}]}, and a newline. The time is that of CLOCK_REALTIME when the mistake was
// found, in seconds with nine decimals.
std::string as_json(const Report& report, const std::vector<NamedStack>& places, const timespec& found);
// The text as a string of JSON, with its quotes.
std::string json_string(std::string_view text);

}  // namespace dapple::soft::check
