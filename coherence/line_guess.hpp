// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Alignment sizes for machines where no maintainable cache reports its own. No maintenance depends on these.
#pragma once

#include <stdint.h>
#include <unistd.h>

#include "coherence/line_walk.hpp"

namespace dapple::coherence {

constexpr uint32_t kCommonLineSizeBytes = 64;
// The kernel's padding of DMA memory.
constexpr uint32_t kCommonGranuleBytes = 128;
constexpr uint32_t kMaxLineSizeBytes = 65536;

// The reported size if it is valid, otherwise a common one.
constexpr uint32_t line_size_or_common(int64_t reported) {
  const bool sensible =
      reported > 0 && reported <= kMaxLineSizeBytes && is_power_of_two(static_cast<uint64_t>(reported));
  return sensible ? static_cast<uint32_t>(reported) : kCommonLineSizeBytes;
}

// libc's answer, otherwise a common size.
inline uint32_t guess_line_size_bytes() noexcept {
  return line_size_or_common(sysconf(_SC_LEVEL1_DCACHE_LINESIZE));
}

constexpr uint32_t guess_granule_bytes(uint32_t line_size_bytes) {
  return line_size_bytes > kCommonGranuleBytes ? line_size_bytes : kCommonGranuleBytes;
}

}  // namespace dapple::coherence
