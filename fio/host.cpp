// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "fio/host.hpp"

#include <sys/types.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "fio/engine.hpp"

// The symbols that fio exports to engines. They are weak, so that a process other than fio gets an error and does not
// crash.
extern "C" {
extern const char fio_version_string[] __attribute__((weak));
extern ssize_t log_err(const char* format, ...) __attribute__((weak, format(printf, 1, 2)));
extern void fio_mark_td_terminate(void* job) __attribute__((weak));
extern void fio_gettime(struct timespec* now, void* caller) __attribute__((weak));
extern void io_u_queued(void* job, void* request) __attribute__((weak));
}

namespace dapple::fio {

const Layout* running_layout() noexcept {
  const char* const version = fio_version_string;
  if (!version || !log_err || !fio_mark_td_terminate || !fio_gettime || !io_u_queued) {
    std::fprintf(stderr, "%s: this program is not a fio that takes engines\n", kEngineName);
    return nullptr;
  }
  const Layout* const layout = layout_of(version);
  if (!layout) say("%s is not known; this engine is for %s", version, known_versions());
  return layout;
}

void say(const char* format, ...) noexcept {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  (void)log_err("%s: %s\n", kEngineName, line);
}

bool Job::is_as_described(const void* engine) const noexcept {
  // This pointer is one of the last members of a job that engines use; fio fills the options by this engine's table.
  if (get<const void*>(layout_.job_engine) != engine) return false;
  const Options* const options = get<const Options*>(layout_.job_options);
  return options && (!options->job || options->job == address()) && number() != 0;
}

void Job::end() const noexcept {
  fio_mark_td_terminate(address());
}

void Request::issued(const Job& job) const noexcept {
  struct timespec now = {};
  fio_gettime(&now, nullptr);
  set(layout_.unit_issue_time, now);
  io_u_queued(job.address(), address());
}

}  // namespace dapple::fio
