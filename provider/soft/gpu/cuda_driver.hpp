// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions of CUDA's driver (libcuda.so.1) that the device uses, by the names and numbers of cuda.h. Nothing is
// loaded: a program without libcuda.so.1 has no memory of CUDA.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dapple::soft {

struct CudaDriver {
  using Address = uint64_t;             // CUdeviceptr
  using Context = struct CudaContext*;  // CUcontext
  using Stream = struct CudaStream*;    // CUstream
  using Result = int;                   // CUresult

  static constexpr Result kSuccess = 0;
  static constexpr Result kOutOfMemory = 2;
  static constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
  // CUpointer_attribute.
  enum Attribute : int { kContext = 1, kMemoryType = 2, kBufferId = 7, kIsManaged = 8, kDeviceOrdinal = 9 };
  static constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE

  Result (*cuPointerGetAttribute)(void* value, int attribute, Address pointer);
  Result (*cuMemGetAddressRange)(Address* begin, size_t* size, Address pointer);
  Result (*cuDeviceGet)(int* device, int ordinal);
  Result (*cuDevicePrimaryCtxRetain)(Context* context, int device);
  Result (*cuDevicePrimaryCtxRelease)(int device);
  Result (*cuCtxPushCurrent)(Context context);
  Result (*cuCtxPopCurrent)(Context* context);
  Result (*cuStreamCreate)(Stream* stream, unsigned flags);
  Result (*cuStreamDestroy)(Stream stream);
  Result (*cuStreamSynchronize)(Stream stream);
  Result (*cuMemcpyHtoDAsync)(Address to, const void* from, size_t size, Stream stream);
  Result (*cuMemcpyDtoHAsync)(void* to, Address from, size_t size, Stream stream);
  Result (*cuGetErrorName)(Result result, const char** name);

  // Null while the program has not loaded the library, or it lacks a function. The library then stays loaded. Any
  // thread. Costs a few hundred instructions.
  static const CudaDriver* of_program();
  // The same without a search: null if no earlier call has found the library. Costs a load.
  static const CudaDriver* known() { return known_.load(std::memory_order_acquire); }

  // The attribute of the memory at `pointer`, or `otherwise` if the driver knows none.
  template <typename Value>
  Value attribute(Attribute attribute, Address pointer, Value otherwise) const {
    Value value = otherwise;
    return cuPointerGetAttribute(&value, attribute, pointer) == kSuccess ? value : otherwise;
  }
  // Such as "CUDA_ERROR_INVALID_VALUE".
  const char* name_of(Result result) const;

 private:
  static constinit inline std::atomic<const CudaDriver*> known_{nullptr};
};

}  // namespace dapple::soft
