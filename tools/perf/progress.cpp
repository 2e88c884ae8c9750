// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace dapple::perf {
namespace {

// Short runs show nothing.
constexpr std::chrono::milliseconds kPeriod(500);
// A message of this many bytes takes much longer than reading the clock; a run of fewer rounds reads it rarely.
constexpr uint64_t kLarge = 65536;
constexpr uint64_t kFew = 640;
constexpr uint64_t kBetweenLooks = 64;

}  // namespace

Progress::Progress(uint64_t size, uint64_t total)
    : size_(size),
      total_(total),
      skipped_(size >= kLarge || total < kFew ? 0 : kBetweenLooks - 1),
      wanted_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + kPeriod) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(uint64_t done) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kPeriod;
  shown_ = true;
  const std::string line = fmt::format("\r{} bytes: {} of {} ({} %)\033[K", size_, done, total_, 100 * done / total_);
  std::fputs(line.c_str(), stderr);
}

}  // namespace dapple::perf
