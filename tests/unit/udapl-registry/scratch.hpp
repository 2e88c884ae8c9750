// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

/// What is written to stderr between construction and text(). One at a time, no threads.
class CapturedStderr {
 public:
  CapturedStderr();
  ~CapturedStderr();
  std::string text();

 private:
  int saved_;
  int file_;
};

/// A fresh folder, deleted with all in it.
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
