// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Writes findings to standard error or a log, and to the file of dapple-run, which decides the exit code.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "provider/common/mutex.hpp"
#include "provider/member/check_options.hpp"
#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/check/reports/suppressions.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf.
class Reporter {
 public:
  enum class Shows : uint8_t { kByOptions, kAll };  // kAll: notes, too

  // The options of the program's __dapple_default_options(), then those of DAPPLE_CHECK. `records`: dapple-run's file;
  // empty if it has none. Ends the process with one line if an option is malformed: no finding must get lost.
  explicit Reporter(const char* records, Shows shows = Shows::kByOptions);

  const Options& options() const { return options_; }
  // A finding from the same places is shown once. With halt_on_error the first error ends the process, after a call of
  // before_halt. If before_halt is null, the process goes on.
  void show(
      const Report& report, void (*before_halt)() = [] {});

  // At the end of the program: a report that another thread has begun would be lost with it. Waits for some seconds at
  // most, and not in a child of fork().
  void await_reports() const;

  // From now on the text goes to this file instead of standard error. The options may name another one.
  void print_to(const char* file);

  Mutex& mutex() { return mutex_; }

 private:
  static constexpr size_t kMaxShown = 200;
  static constexpr size_t kMaxKnown = 10000;

  bool is_new(const Report& report);
  void record(const std::string& line) const;
  void print(const std::string& text) const;

  Mutex mutex_{LockRank::kReporter};
  Options options_;
  Suppressions suppressions_;
  const std::string records_;
  std::string file_;             // of print_to(); empty: standard error
  std::set<std::string> known_;  // suppressed ones included
  size_t shown_ = 0;
  std::atomic<uint32_t> showing_{0};  // calls of show()
  const pid_t process_ = getpid();
};

}  // namespace dapple::soft::check
