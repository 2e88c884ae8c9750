// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Decodes Linux's answers about a ppc64le CPU's cache, separately from asking, so that tests can supply answers.
#pragma once

#include "coherence/cache.hpp"
#include "coherence/line_walk.hpp"

namespace dapple::coherence::ppc64le {

struct Features {
  uint32_t block_size_bytes;  // the block of dcbst and dcbf; a power of two
  bool persistence;           // dcbstps, dcbfps and phwsync, of ISA 3.1
};

// Every CPU that runs little-endian Linux has blocks of this size.
constexpr uint32_t kUsualBlockBytes = 128;
constexpr uint64_t kLargestBlockBytes = 65536;
// From the kernel's ABI: PPC_FEATURE2_ARCH_3_1.
constexpr uint64_t kHwcap2Arch31 = 0x00040000;

// AT_DCACHEBSIZE and AT_HWCAP2; 0 if the kernel gives none.
constexpr Features decode_auxv(uint64_t dcache_block_size, uint64_t hwcap2) {
  Features features = {kUsualBlockBytes, (hwcap2 & kHwcap2Arch31) != 0};
  if (dcache_block_size <= kLargestBlockBytes && is_power_of_two(dcache_block_size)) {
    features.block_size_bytes = static_cast<uint32_t>(dcache_block_size);
  }
  return features;
}

// The answers of the running kernel.
Features read_features() noexcept;

BackEnd choose(const Features& features) noexcept;

}  // namespace dapple::coherence::ppc64le
