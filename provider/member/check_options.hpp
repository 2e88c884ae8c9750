// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_CHECK: the options of dapple-run --check for its findings, such as "exitcode=66:log_path=/tmp/log".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dapple::soft::check {

struct Options {
  int exit_code = 66;
  bool halt_on_error = false;
  bool notes = false;
  bool strict = false;            // also what may be no mistake: dapple-check(1)
  bool races = false;             // also races between programs
  std::optional<int> delay_seed;  // of the late requests, instead of the process' seed; 0: none are late
  std::string log_path;           // empty: standard error
  std::string suppressions;       // the name of a file; empty: none
};

// Words with colons, commas or white space between them. Later words win. Returns the first malformed word, or an empty
// text.
std::string_view read_options(std::string_view text, Options& options);

}  // namespace dapple::soft::check
