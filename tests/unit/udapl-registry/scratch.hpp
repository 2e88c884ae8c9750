// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

/// Records stderr between construction and text(). One object at a time, no threads.
class CapturedStderr {
 public:
  CapturedStderr();
  ~CapturedStderr();
  std::string text();

 private:
  int saved_;
  int file_;
};

/// A new folder, which is deleted with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  /// Writes a file in it; returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};
