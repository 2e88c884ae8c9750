// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The places from which programs call verbs, in a file that `dapple-run --enumerate` makes and all of their processes
// map. The notes of a killed process stay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dapple::soft {

enum class PointState : uint32_t { kFree, kTaken, kComplete };

// One for each process, verb and stack. All texts end with a zero.
struct FaultPoint {
  std::atomic<PointState> state{PointState::kFree};  // the rest is there when it is kComplete
  uint32_t process = 0;
  uint64_t stack = 0;  // call_site.hpp
  std::atomic<uint64_t> calls{0};
  char program[16] = {};
  char verb[32] = {};
  char place[64] = {};  // of the call, for people
};

inline constexpr size_t kMaxFaultPoints = 1024;
inline constexpr size_t kFaultPointsSize = kMaxFaultPoints * sizeof(FaultPoint);

}  // namespace dapple::soft
