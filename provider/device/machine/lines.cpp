// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/lines.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace dapple::provider {

Lines::Lines(const Path& file) : fd_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) error_ = errno;
}

Lines::~Lines() {
  if (fd_ >= 0) close(fd_);
}

const char* Lines::next() {
  bool cut = false;  // the next bytes belong to a line that was dropped
  while (error_ == 0) {
    char* const begin = buffer_ + begin_;
    if (auto* const newline = static_cast<char*>(memchr(begin, '\n', end_ - begin_))) {
      *newline = '\0';
      begin_ = static_cast<size_t>(newline + 1 - buffer_);
      if (!cut) return begin;
      cut = false;
      continue;
    }
    if (ended_) {
      if (begin_ == end_ || cut) return nullptr;
      buffer_[end_] = '\0';
      begin_ = end_;
      return begin;
    }
    memmove(buffer_, begin, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (end_ == sizeof(buffer_) - 1) {
      // Longer than any line that a caller looks for.
      end_ = 0;
      cut = true;
    }
    const ssize_t got = read(fd_, buffer_ + end_, sizeof(buffer_) - 1 - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_ = errno;
    if (got == 0) ended_ = true;
    if (got > 0) end_ += static_cast<size_t>(got);
  }
  return nullptr;
}

}  // namespace dapple::provider
