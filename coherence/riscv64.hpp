// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Decodes Linux's answers about a riscv64 CPU's cache-block operations, separately from asking, so that tests can
// supply answers.
#pragma once

#include "coherence/cache.hpp"
#include "coherence/line_walk.hpp"

namespace dapple::coherence::riscv64 {

// From the kernel's ABI: struct riscv_hwprobe, and the keys and bits that matter here.
struct HwprobePair {
  int64_t key;  // -1 after the call: the kernel does not know it
  uint64_t value;
};
constexpr int64_t kKeyImaExt0 = 4;
constexpr uint64_t kImaExt0Zicbom = uint64_t{1} << 55;
constexpr int64_t kKeyZicbomBlockSize = 12;

// The result of riscv_hwprobe(2) for these two keys and all CPUs. A kernel before 6.4 fails with ENOSYS. A kernel
// before 6.15 does not know Zicbom: cbo.clean and cbo.flush trap there on every CPU.
struct HwprobeAnswer {
  long result;
  HwprobePair extensions;
  HwprobePair block_size;
};

struct Features {
  bool hwprobe;         // the kernel has the system call
  bool zicbom;          // every CPU has cbo.clean and cbo.flush, and lets user space use them
  uint32_t block_size;  // bytes, a power of two; 0: unknown
};

// A stride that is known to be no larger than any block. It is used if the size is unknown: maintaining a block several
// times is only slow, but skipping a block is wrong.
constexpr uint32_t kSmallestBlockBytes = 16;
constexpr uint64_t kLargestBlockBytes = 65536;

constexpr Features decode_hwprobe(const HwprobeAnswer& answer) {
  Features features = {};
  if (answer.result != 0) return features;
  features.hwprobe = true;
  features.zicbom = answer.extensions.key == kKeyImaExt0 && (answer.extensions.value & kImaExt0Zicbom) != 0;
  const uint64_t size = answer.block_size.value;
  if (answer.block_size.key == kKeyZicbomBlockSize && size <= kLargestBlockBytes && is_power_of_two(size)) {
    features.block_size = static_cast<uint32_t>(size);
  }
  return features;
}

// The answers of the running kernel.
Features read_features() noexcept;

// Without Zicbom the back end has only the fences, and cpu.refusal holds the reason.
BackEnd choose(const Features& features) noexcept;

}  // namespace dapple::coherence::riscv64
