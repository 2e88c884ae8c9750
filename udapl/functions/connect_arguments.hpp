// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The common checks of the three functions that connect an endpoint, and of the two that answer a request. Each returns
// the error with the number of the caller's argument, or DAT_SUCCESS.
#pragma once

#include <cstdint>
#include <span>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/functions/convert.hpp"

namespace dapple::udapl::functions {

// A timeout of 0 is refused, because a connection takes time.
inline DAT_RETURN check_timeout(DAT_TIMEOUT timeout, DAT_RETURN_SUBTYPE argument) noexcept {
  return timeout == 0 ? wrong_argument(argument, "it must be above 0, in microseconds, or DAT_TIMEOUT_INFINITE")
                      : kSuccess;
}

// argument is the number of the size's argument; the data's follows it. limit is in bytes.
inline DAT_RETURN check_private_data(DAT_COUNT size, const void* data, size_t limit,
                                     DAT_RETURN_SUBTYPE argument) noexcept {
  if (size < 0) return wrong_argument(argument, "it must not be negative");
  if (static_cast<size_t>(size) > limit) {
    expect_at_most(limit);
    return error(DAT_INVALID_PARAMETER, argument);
  }
  if (size > 0 && !data) return error(DAT_INVALID_PARAMETER, static_cast<DAT_RETURN_SUBTYPE>(argument + 1));
  return kSuccess;
}

// The private data, once it is checked.
inline std::span<const uint8_t> to_span(const void* data, DAT_COUNT size) noexcept {
  return {static_cast<const uint8_t*>(data), static_cast<size_t>(size)};
}

// Only best effort is supported. The other qualities of service of the headers are refused as not supported, and
// unknown values as invalid.
inline DAT_RETURN check_qos(DAT_QOS qos, DAT_RETURN_SUBTYPE argument) noexcept {
  constexpr int kKnown = DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY | DAT_QOS_PREMIUM;
  if (qos == DAT_QOS_BEST_EFFORT) return kSuccess;
  expect("only DAT_QOS_BEST_EFFORT is supported");
  return static_cast<int>(qos) & ~kKnown ? error(DAT_INVALID_PARAMETER, argument) : error(DAT_MODEL_NOT_SUPPORTED);
}

}  // namespace dapple::udapl::functions
