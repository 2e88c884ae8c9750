// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What arm64's cache type register says, apart from reading it, so that tests can decode any value on any machine.
#ifndef DAPPLE_COHERENCE_ARM64_HPP
#define DAPPLE_COHERENCE_ARM64_HPP

#include <stdint.h>

namespace dapple::coherence::arm64 {

struct CacheType {
  uint32_t line_size_bytes;          // DminLine: the smallest data cache line of all caches of this system
  uint32_t writeback_granule_bytes;  // CWG
};

constexpr uint32_t kWordBytes = 4;
// CWG 0 says nothing; 128 is what the kernel pads DMA memory to. Above 2 KiB the values are reserved.
constexpr uint32_t kUnknownGranuleBytes = 128;
constexpr uint32_t kMaxGranuleLog2Words = 9;

// CTR_EL0: DminLine in bits 19..16 and CWG in bits 27..24, each the binary logarithm of a number of 4-byte words. IDC
// and DIC (bits 28, 29) are about instruction fetch and say nothing about devices.
constexpr CacheType decode_ctr_el0(uint64_t ctr_el0) {
  const uint32_t line_log2_words = ctr_el0 >> 16 & 0xf;
  const uint32_t granule_log2_words = ctr_el0 >> 24 & 0xf;
  CacheType type = {kWordBytes << line_log2_words, kUnknownGranuleBytes};
  if (granule_log2_words != 0 && granule_log2_words <= kMaxGranuleLog2Words) {
    type.writeback_granule_bytes = kWordBytes << granule_log2_words;
  }
  if (type.writeback_granule_bytes < type.line_size_bytes) type.writeback_granule_bytes = type.line_size_bytes;
  return type;
}

}  // namespace dapple::coherence::arm64

#endif  // DAPPLE_COHERENCE_ARM64_HPP
