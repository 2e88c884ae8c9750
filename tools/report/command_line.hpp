// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The common parts of the tools' command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dapple {

inline constexpr int kBadUsage = 2;

// Prepares the help of app, adds --version, parses, and prints help, version or an error. Empty values are errors.
// Returns the exit code if the program must end now. A message about wrong options is one line that begins with the
// program's name.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

// A number of bytes: "65536", "64k", "8M" or "1G", in powers of 1024, with an optional "B" or "iB". Empty for anything
// else.
std::optional<uint64_t> size_of(std::string_view text);

}  // namespace dapple
