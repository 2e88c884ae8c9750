// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/trace.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cassert>

#include "provider/common/settings.hpp"
#include "provider/records/file_name.hpp"
#include "provider/system/errno_names.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {

TraceLine::TraceLine() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  add("{\"time\":%lld.%09ld,\"process\":%d,\"thread\":%d", static_cast<long long>(now.tv_sec), now.tv_nsec, getpid(),
      gettid());
}

void TraceLine::add(const char* format, ...) {
  const size_t room = sizeof text_ - kEnd - used_;
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text_ + used_, room, format, arguments);
  va_end(arguments);
  if (size > 0 && static_cast<size_t>(size) < room) used_ += static_cast<size_t>(size);
}

TraceLine& TraceLine::text(const char* name, std::string_view value) {
  add(",\"%s\":\"%.*s\"", name, static_cast<int>(value.size()), value.data());
  return *this;
}

TraceLine& TraceLine::number(const char* name, uint64_t value) {
  add(",\"%s\":%llu", name, static_cast<unsigned long long>(value));
  return *this;
}

TraceLine& TraceLine::signed_number(const char* name, int64_t value) {
  add(",\"%s\":%lld", name, static_cast<long long>(value));
  return *this;
}

TraceLine& TraceLine::hex(const char* name, uint64_t value) {
  add(",\"%s\":\"0x%llx\"", name, static_cast<unsigned long long>(value));
  return *this;
}

TraceLine& TraceLine::error(int error) {
  if (error == 0) return *this;
  const std::string_view name = errno_name(error);
  return name.empty() ? number("error", static_cast<uint64_t>(error)) : text("error", name);
}

std::string_view TraceLine::end() {
  assert(used_ + kEnd <= sizeof text_);
  text_[used_] = '}';
  text_[used_ + 1] = '\n';
  return {text_, used_ + kEnd};
}

bool Trace::open(Problem& problem) {
  const char* name = provider::settings().trace;
  if (name == nullptr) return false;
  char path[PATH_MAX];
  if (!expand_file_name(name, path)) {
    problem.set(EINVAL, "DAPPLE_TRACE is not a file name: %.150s", name);
    return false;
  }
  file_ = RecordFile(OwnedFd(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600)));
  if (!file_) problem.set(errno, "DAPPLE_TRACE: %.150s cannot be written: %s", path, strerror(errno));
  if (file_) begin();
  return static_cast<bool>(file_);
}

// A new file begins with the seed that repeats the run.
void Trace::begin() {
  const std::optional<uint64_t> seed = seed_of_process();
  if (!seed.has_value() || lseek(file_.descriptor().get(), 0, SEEK_END) > 0) return;
  TraceLine line;
  append(line.number("seed", *seed));
}

void Trace::append(TraceLine& line) {
  const std::string_view whole = line.end();
  const iovec part = {const_cast<char*>(whole.data()), whole.size()};
  file_.append({&part, 1});
}

}  // namespace dapple::soft
