// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For memory_access.cpp alone: the accesses of a GPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "provider/common/mutex.hpp"
#include "provider/soft/memory/gpu_memory.hpp"

namespace dapple::soft {

// A copy of memory that a pointer reaches, and the same for a GPU's.
template <typename Plain, typename Gpu>
struct Copies : Plain, Gpu {
  using Plain::operator();
  using Gpu::operator();
};
template <typename Plain, typename Gpu>
Copies(Plain, Gpu) -> Copies<Plain, Gpu>;

inline Mutex gpu_words_mutex{LockRank::kGpuWords};

// An atomic operation. Those of this process' devices come one at a time; the GPU's own, and the program's copies, may
// come in between, as with a device of IBV_ATOMIC_HCA. `stores`: also if the word stays the same. False if the word
// cannot be reached.
template <typename Operation>
bool change_gpu_word(GpuMemory& gpu, std::byte* at, bool stores, Operation operation) {
  const std::lock_guard lock(gpu_words_mutex);
  uint64_t word = 0;
  auto* bytes = reinterpret_cast<std::byte*>(&word);
  if (!gpu.copy_out(at, bytes, sizeof word)) return false;
  const uint64_t before = word;
  operation(&word);
  return (word == before && !stores) || gpu.copy_in(at, bytes, sizeof word);
}

}  // namespace dapple::soft
