// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Finds memory that only a GPU's library can copy. CUDA is the only such library so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "provider/soft/memory/gpu_memory.hpp"

namespace dapple::soft {

struct FoundGpuMemory {
  std::unique_ptr<GpuMemory> memory;  // null: it is not a GPU's, or there is an error
  // EFAULT: the range does not end within its allocation; ENOMEM; EIO: the library has failed with `problem`.
  int error = 0;
  const char* problem = nullptr;
  // The allocation, if it is a GPU's.
  uint64_t begin = 0;
  uint64_t length = 0;
};

// `length` is not 0. Any thread.
FoundGpuMemory find_gpu_memory(const void* address, size_t length);
// The same for a program that has registered memory since it loaded the library. Costs a load for any other program.
FoundGpuMemory find_known_gpu_memory(const void* address, size_t length);
// The memory of a dma-buf of `size` bytes that nobody can map, if [offset, offset + length) of it is at the GPU's
// address `iova`. Empty if it may be anywhere else.
FoundGpuMemory find_gpu_dmabuf(uint64_t iova, uint64_t offset, size_t length, uint64_t size);

}  // namespace dapple::soft
