// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Chooses an x86-64 CPU's cache instructions, separately from asking the CPU, so that tests can supply its features.
#pragma once

#include "coherence/cache.hpp"
#include "coherence/line_walk.hpp"

namespace dapple::coherence::x86_64 {

// The registers of CPUID that matter here.
struct CpuidWords {
  uint32_t max_leaf;   // leaf 0: EAX
  uint32_t leaf1_ebx;  // bits 15..8: line size of clflush in units of 8 bytes
  uint32_t leaf1_edx;  // bit 19: clflush
  uint32_t leaf7_ebx;  // subleaf 0, bit 23: clflushopt, bit 24: clwb; ignored if max_leaf < 7
};

// Every x86-64 CPU has lines of this size.
constexpr uint32_t kUsualLineSizeBytes = 64;

struct Features {
  bool clflush;
  bool clflushopt;
  bool clwb;
  uint32_t line_size_bytes;                      // the stride
  uint32_t granule_bytes = kUsualLineSizeBytes;  // >= line_size_bytes
};

constexpr Features decode_cpuid(const CpuidWords& words) {
  Features features = {false, false, false, kUsualLineSizeBytes};
  if (words.max_leaf >= 1) {
    features.clflush = (words.leaf1_edx >> 19 & 1) != 0;
    // The size is defined only together with clflush. A hypervisor may report any value: with a larger stride
    // maintenance would skip lines, and with a smaller alignment two owners would share a line.
    const uint32_t said = (words.leaf1_ebx >> 8 & 0xff) * 8;
    if (features.clflush && is_power_of_two(said)) {
      if (said < features.line_size_bytes) features.line_size_bytes = said;
      if (said > features.granule_bytes) features.granule_bytes = said;
    }
  }
  if (words.max_leaf >= 7) {
    features.clflushopt = (words.leaf7_ebx >> 23 & 1) != 0;
    features.clwb = (words.leaf7_ebx >> 24 & 1) != 0;
  }
  return features;
}

// The features of the running CPU.
Features read_features() noexcept;

// Clean: clwb, else clflushopt, else clflush. Clean + invalidate: clflushopt, else clflush; never clwb, which may keep
// the line.
BackEnd choose(const Features& features) noexcept;

}  // namespace dapple::coherence::x86_64
