// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Decodes arm64's cache type register and the kernel's hardware capabilities, separately from reading them, so that
// tests can decode any value on any machine.
#pragma once

#include <stdint.h>

#include "coherence/cache.hpp"

namespace dapple::coherence::arm64 {

struct CacheType {
  uint32_t line_size_bytes;          // DminLine: the smallest data cache line of all caches of this system
  uint32_t writeback_granule_bytes;  // CWG
};

constexpr uint32_t kWordBytes = 4;
// CWG 0 gives no value; then the kernel pads DMA memory to 128. Values above 2 KiB are reserved.
constexpr uint32_t kUnknownGranuleBytes = 128;
constexpr uint32_t kMaxGranuleLog2Words = 9;

// CTR_EL0: DminLine in bits 19..16 and CWG in bits 27..24, each the binary logarithm of a number of 4-byte words. IDC
// and DIC (bits 28, 29) concern instruction fetch, not devices.
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

// The point to which a "dc" instruction writes a line so that it survives a loss of power.
enum class PersistencePoint {
  kNone,             // the CPU has no instruction for it
  kPersistence,      // dc cvap: the point of persistence
  kDeepPersistence,  // dc cvadp: safe even if the platform's emergency power fails
};

// AT_HWCAP and AT_HWCAP2. The bits are the kernel's ABI (HWCAP_DCPOP, HWCAP2_DCPODP).
constexpr PersistencePoint decode_hwcap(uint64_t hwcap, uint64_t hwcap2) {
  constexpr uint64_t kHwcapDcpop = uint64_t{1} << 16;
  constexpr uint64_t kHwcap2Dcpodp = uint64_t{1} << 0;
  if ((hwcap2 & kHwcap2Dcpodp) != 0) return PersistencePoint::kDeepPersistence;
  if ((hwcap & kHwcapDcpop) != 0) return PersistencePoint::kPersistence;
  return PersistencePoint::kNone;
}

// The operations of a CPU with these values.
BackEnd choose(const CacheType& type, PersistencePoint persistence) noexcept;

// The values of the running CPU.
CacheType read_cache_type() noexcept;
PersistencePoint read_persistence_point() noexcept;

}  // namespace dapple::coherence::arm64
