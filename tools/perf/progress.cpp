// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace dapple::perf {
namespace {

// Short runs show nothing.
constexpr std::chrono::milliseconds kPeriod(500);

}  // namespace

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)), total_(total), wanted_(isatty(STDERR_FILENO) == 1), next_(Clock::now() + kPeriod) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(uint64_t done) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kPeriod;
  shown_ = true;
  const std::string line = fmt::format("\r{}: {} of {} ({} %)\033[K", what_, done, total_, 100 * done / total_);
  std::fputs(line.c_str(), stderr);
}

}  // namespace dapple::perf
