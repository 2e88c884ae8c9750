// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The findings that a user does not want to see: a file with lines KIND:PATTERN. A finding is dropped if its kind is
// KIND (or KIND is *) and PATTERN, with * and ?, matches the function or the module's name of one of its frames. Lines
// that begin with # are comments.
#pragma once

#include <string>
#include <vector>

#include "provider/soft/check/reports/printed.hpp"

namespace dapple::soft::check {

class Suppressions {
 public:
  // False if the file cannot be read, or has another line; `error` explains it.
  bool read(const std::string& file, std::string& error);
  bool match(const Report& report, const std::vector<NamedStack>& places) const;

 private:
  struct Line {
    std::string kind, pattern;
  };
  std::vector<Line> lines_;
};

}  // namespace dapple::soft::check
