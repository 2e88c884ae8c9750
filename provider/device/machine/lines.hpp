// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A long file of /proc, line by line, without allocation.
#pragma once

#include "provider/device/machine/files.hpp"

namespace dapple::provider {

// Confined.
class Lines {
 public:
  explicit Lines(const Path& file);
  ~Lines();
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // The next line, without its end, until the next call; null at the end, and on an error. A line that is longer than
  // two paths is left out.
  const char* next();
  // 0, or the errno of opening or reading the file.
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  bool ended_ = false;
  size_t begin_ = 0;
  size_t end_ = 0;
  char buffer_[2 * PATH_MAX];
};

}  // namespace dapple::provider
