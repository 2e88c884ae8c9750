// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What dapple-run and the processes of its program tell each other about a hang: a file in memory, full of zeros at
// first, that dapple-run makes and each process maps (DAPPLE_HANG names it). Behind it the processes append their
// reports, which dapple-run prints: a test runner may have taken the program's standard error for itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

struct HangWatch {
  // By CLOCK_MONOTONIC: the last time at which a process found that its threads get on. 0: no process watches yet.
  std::atomic<uint64_t> progress_ns{0};
  // 1: dapple-run wants each process to explain what its threads wait for.
  std::atomic<uint32_t> explain{0};
  std::atomic<uint32_t> explaining{0};  // the processes that have begun
  std::atomic<uint32_t> explained{0};   // those that have done so
  // 1: these processes end now.
  std::atomic<uint32_t> end{0};
};

}  // namespace dapple::soft
