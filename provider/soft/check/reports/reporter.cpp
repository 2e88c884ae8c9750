// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/reporter.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cassert>

#include "provider/common/host_guards.hpp"
#include "provider/common/standard_error.hpp"
#include "provider/soft/check/reports/kinds.hpp"
#include "provider/soft/check/reports/printed.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft::check {
namespace {

constexpr int kWrongUse = 2;

[[noreturn]] void refuse(const std::string& reason) {
  fprintf(stderr, "dapple: %s\n", reason.c_str());
  _exit(kWrongUse);
}

void read_or_refuse(const char* from, const char* text, Options& options) {
  if (text == nullptr) return;
  const std::string_view wrong = read_options(text, options);
  if (!wrong.empty()) refuse(std::string(from) + " has the unknown word " + std::string(wrong));
}

// Appends the text in one piece, so that several processes may write to one file. False after a line on standard error.
bool append(const std::string& name, const std::string& text) {
  const OwnedFd file(open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return true;
  fprintf(stderr, "dapple: %s cannot be written: %s\n", name.c_str(), strerror(errno));
  return false;
}

}  // namespace

Reporter::Reporter(const char* records, Shows shows) : records_(records) {
  const auto defaults = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "__dapple_default_options"));
  if (defaults != nullptr) read_or_refuse("__dapple_default_options()", defaults(), options_);
  read_or_refuse("DAPPLE_CHECK", provider::settings().check, options_);
  std::string error;
  if (!options_.suppressions.empty() && !suppressions_.read(options_.suppressions, error))
    refuse("DAPPLE_CHECK: " + error);
  if (shows == Shows::kAll) options_.notes = true;
  record("{\"attached\":" + std::to_string(getpid()) + ",\"program\":" + json_string(program_invocation_short_name) +
         ",\"exitcode\":" + std::to_string(shows == Shows::kAll ? 0 : options_.exit_code) + "}\n");
}

void Reporter::record(const std::string& line) const {
  if (!records_.empty()) append(records_, line);
}

void Reporter::print(const std::string& text) const {
  if (!options_.log_path.empty() && append(options_.log_path + "." + std::to_string(getpid()), text)) return;
  if (!file_.empty() && append(file_, text)) return;
  // Nothing can be done about a standard error that is closed.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  if (!provider::has_standard_error_of_dapple_run()) record("{\"kept\":" + json_string(text) + "}\n");
}

void Reporter::print_to(const char* file) {
  const std::lock_guard lock(mutex_);
  file_ = file;
}

bool Reporter::is_new(const Report& report) {
  assert_held(mutex_);
  assert(known_.size() <= kMaxKnown);
  std::string key = report.kind + report.remedy;
  for (const ReportedStack& place : report.places) key += bytes_of(place.stack);
  return known_.size() < kMaxKnown && known_.insert(key).second;
}

void Reporter::await_reports() const {
  constexpr int kMaxLooks = 5000;
  constexpr timespec kLook = {0, 1'000'000};
  if (process_ != getpid()) return;
  for (int i = 0; i < kMaxLooks && showing_.load(std::memory_order_acquire) != 0; i++) nanosleep(&kLook, nullptr);
}

namespace {

// A call that is in progress.
class Counted {
 public:
  explicit Counted(std::atomic<uint32_t>& calls) : calls_(calls) { calls_.fetch_add(1, std::memory_order_relaxed); }
  ~Counted() {
    [[maybe_unused]] const uint32_t before = calls_.fetch_sub(1, std::memory_order_release);
    assert(before > 0);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<uint32_t>& calls_;
};

}  // namespace

void Reporter::show(const Report& report, void (*before_halt)()) {
  if (report.level == Level::kNote && !options_.notes) return;
  const Counted in_progress(showing_);
  assert(is_kind(report.kind));
  const ErrnoGuard keep;
  timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  {
    const std::lock_guard lock(mutex_);
    if (shown_ == kMaxShown || !is_new(report)) return;
  }
  // Without the lock, as the dynamic linker has locks, too.
  std::vector<Callers> callers;
  for (const ReportedStack& place : report.places) callers.push_back(callers_of(place.stack));
  const std::lock_guard lock(mutex_);
  if (shown_ == kMaxShown) return;
  const std::vector<NamedStack> places = named(report.places, callers);
  if (suppressions_.match(report, places)) return;
  record(as_json(report, places, found));
  print(as_text(report, places));
  shown_++;
  assert(shown_ <= kMaxShown && shown_ <= known_.size());
  if (report.level == Level::kError && options_.halt_on_error && before_halt != nullptr) {
    before_halt();
    _exit(options_.exit_code);
  }
}

}  // namespace dapple::soft::check
