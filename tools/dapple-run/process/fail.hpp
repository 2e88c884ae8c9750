// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::run {

inline constexpr int kWrongUse = 2;
inline constexpr int kCannotRun = 126;
inline constexpr int kNoSuchProgram = 127;

// Prints one line on standard error.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

// Prints one line on standard error and ends the program.
[[noreturn, gnu::format(printf, 2, 3)]] void fail(int code, const char* format, ...);

}  // namespace dapple::run
