// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Programs write down planned faults in a file that dapple-run makes and all of their processes map: the
// faults that have come true, and the places from which verbs are called. The notes of a killed process stay.
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

// What became of a planned fault.
struct FaultComing {
  std::atomic<uint64_t> most{0};  // the calls or completions of one process, or the registered bytes
  std::atomic<uint32_t> came{0};  // 1 after the fault has happened in a process
};

inline constexpr size_t kMaxPlannedFaults = 64;
inline constexpr size_t kMaxFaultPoints = 1024;
inline constexpr size_t kDisturbances = 7;

// The file, which is full of zeros at first.
struct FaultNotes {
  std::atomic<uint32_t> wants_points{0};  // 1: places are noted, too
  // One for each planned fault, in their order, and the last for "registered=".
  FaultComing comings[kMaxPlannedFaults + 1];
  // 1 after one has come true (disturbances.hpp).
  std::atomic<uint32_t> disturbances[kDisturbances];
  FaultPoint points[kMaxFaultPoints];
};

}  // namespace dapple::soft
