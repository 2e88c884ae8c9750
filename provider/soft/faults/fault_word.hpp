// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One word of a plan of faults, such as "ibv_reg_mr@3=ENOMEM".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dapple::soft {

struct PlannedFault {
  size_t of = 0;       // planned_names.hpp
  uint64_t stack = 0;  // 0: any
  uint64_t number = 0;
  bool lasts = false;
  int result = 0;
};

// The result SIGKILL, in the place of an errno or a status.
inline constexpr int kDies = -1;

inline constexpr int kMaxErrno = 4095;  // the kernel's limit

inline constexpr std::string_view kRegistered = "registered=";
inline constexpr std::string_view kArm = "arm=";

// These return an empty text, or the reason why the word is malformed.
std::string read_fault(std::string_view word, PlannedFault& fault);
// The word begins with kRegistered.
std::string read_registered(std::string_view word, uint64_t& bytes);
// The word begins with kArm.
std::string read_arm(std::string_view word, uint64_t& nanoseconds);

// Completions, and what comes with them.
bool is_of_completions(size_t of);

// "1ms": a number with ns, us, ms or s; at most 10 s.
bool parse_delay(std::string_view text, uint64_t& nanoseconds);

}  // namespace dapple::soft
