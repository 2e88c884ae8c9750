// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/gpu/gpu_search.hpp"

#include <unistd.h>

#include <cassert>

#include "provider/soft/gpu/cuda_memory.hpp"
#include "provider/soft/memory/memory_table.hpp"

namespace dapple::soft {

FoundGpuMemory find_gpu_memory(const void* address, size_t length) {
  assert(length > 0);
  const CudaDriver* cuda = CudaDriver::of_program();
  return cuda == nullptr ? FoundGpuMemory() : CudaMemory::find(*cuda, address, length);
}

FoundGpuMemory find_known_gpu_memory(const void* address, size_t length) {
  return CudaDriver::known() == nullptr ? FoundGpuMemory() : find_gpu_memory(address, length);
}

// A descriptor does not tell its address. The IOVA does, as programs choose it. The dma-buf would then begin `offset`
// bytes before, and must be of whole pages of that allocation.
FoundGpuMemory find_gpu_dmabuf(uint64_t iova, uint64_t offset, size_t length, uint64_t size) {
  if (offset > iova) return {};
  FoundGpuMemory place = find_gpu_memory(reinterpret_cast<const void*>(static_cast<uintptr_t>(iova)), length);
  if (place.memory == nullptr) return {};
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = place.begin / page * page;
  const uint64_t end = (place.begin + place.length + page - 1) / page * page;
  return within(iova - offset, size, begin, end - begin) ? std::move(place) : FoundGpuMemory();
}

}  // namespace dapple::soft
