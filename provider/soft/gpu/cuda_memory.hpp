// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of a region in a GPU of NVIDIA: what cuMemAlloc(), cudaMalloc() and the like have given.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>

#include "provider/soft/gpu/cuda_driver.hpp"
#include "provider/soft/gpu/gpu_search.hpp"
#include "provider/soft/memory/gpu_memory.hpp"

namespace dapple::soft {

// Copies are queued in a stream of the region's own and waited for. That stream waits for no other, so a kernel of the
// program that runs until a message comes does not stop the message. Copies of one region are in the order of the
// calls.
class CudaMemory final : public GpuMemory {
 public:
  // As find_gpu_memory(), for CUDA alone. Managed memory and registered memory of the host are not the GPU's.
  static FoundGpuMemory find(const CudaDriver& driver, const void* address, size_t length);

  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  bool copy_out(const std::byte* from, std::byte* to, size_t size) override;
  bool copy_in(std::byte* to, const std::byte* from, size_t size) override;
  const char* problem() const override { return problem_.load(std::memory_order_relaxed); }

 private:
  class Current;

  CudaMemory(const CudaDriver& driver, CudaDriver::Address begin);
  CudaDriver::Result open();
  // A number of the allocation at `begin_`, which no other has had; 0 if there is none, or the driver gives none.
  uint64_t allocation() const;
  bool is_there() const;
  template <typename Queue>
  bool copy(Queue queue);
  bool fail(const char* problem);

  const CudaDriver& driver_;
  const CudaDriver::Address begin_;
  const uint64_t allocation_;
  const pid_t process_;
  CudaDriver::Context context_ = nullptr;
  int device_ = 0;
  bool retains_ = false;  // the device's primary context
  CudaDriver::Stream stream_ = nullptr;
  std::atomic<const char*> problem_{nullptr};
};

}  // namespace dapple::soft
