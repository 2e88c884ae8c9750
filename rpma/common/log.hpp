// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The library's messages and their destination. Threads: any number of threads may use everything here.
#pragma once

#include <librpma.h>

#include <atomic>

namespace dapple::rpma {

extern std::atomic<int> log_threshold;
extern std::atomic<rpma_log_function*> log_function;

// Logs a call to another library that failed with this errno value. Some drivers return it negated.
[[gnu::cold]] void log_failure(const char* file, int line, const char* function, const char* call, int error) noexcept;

}  // namespace dapple::rpma

// level: without its prefix; format: a literal without a newline.
#define LOG(level, format, ...)                                                                                       \
  do {                                                                                                                \
    if (RPMA_LOG_LEVEL_##level <= ::dapple::rpma::log_threshold.load(std::memory_order_relaxed)) {                    \
      ::dapple::rpma::log_function.load(std::memory_order_relaxed)(RPMA_LOG_LEVEL_##level, __FILE__, __LINE__,        \
                                                                   __func__, format "\n" __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                                 \
  } while (0)

// The result of a function in which such a call failed.
#define FAILED(call, error)                                                \
  (::dapple::rpma::log_failure(__FILE__, __LINE__, __func__, call, error), \
   RPMA_E_PROVIDER)  // no refusal: log_failure() has it
