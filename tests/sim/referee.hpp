// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The virtual clock, the trace of a run, and its first broken rule.
#pragma once

#include <cstdint>
#include <string>

#include "roce/host/ports.hpp"

namespace dapple::sim {

class Referee {
 public:
  explicit Referee(bool verbose) : verbose_(verbose) {}

  roce::Time now = 0;

  // Records an occurrence in the trace. `what` has static storage.
  void note(const char* what, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0);
  // Ends the run. Only the first call counts.
  [[gnu::format(printf, 2, 3)]] void fail(const char* format, ...);
  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  uint64_t trace_hash() const { return hash_; }
  bool verbose() const { return verbose_; }

 private:
  bool verbose_;
  uint64_t hash_ = 0;
  std::string reason_;
};

}  // namespace dapple::sim
