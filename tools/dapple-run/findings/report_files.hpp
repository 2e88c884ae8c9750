// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The files of --json, --sarif and --junit.
#pragma once

#include <string>

#include "provider/system/owned_fd.hpp"

namespace dapple::run {

// A file that is written once. It is opened, and empty, before the program runs: a user must not learn after a long run
// that the report cannot be written.
class ReportFile {
 public:
  // `path`: empty for none. Ends dapple-run with one line, which has the option, if the file cannot be written.
  ReportFile(const char* option, const std::string& path);
  // True without a file. False after a line on standard error.
  bool write(const std::string& text);

 private:
  const std::string path_;
  soft::OwnedFd file_;
};

}  // namespace dapple::run
