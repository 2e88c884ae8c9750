// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/gpu/cuda_memory.hpp"

#include <errno.h>
#include <unistd.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"

namespace dapple::soft {

using Result = CudaDriver::Result;

// Makes a context the thread's current one: that of the program's thread may be another, and our threads have none.
class CudaMemory::Current {
 public:
  Current(const CudaDriver& driver, CudaDriver::Context context)
      : driver_(driver), result_(driver.cuCtxPushCurrent(context)) {}
  ~Current() {
    CudaDriver::Context context = nullptr;
    if (result_ == CudaDriver::kSuccess) driver_.cuCtxPopCurrent(&context);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  Result result() const { return result_; }

 private:
  const CudaDriver& driver_;
  const Result result_;
};

CudaMemory::CudaMemory(const CudaDriver& driver, CudaDriver::Address begin)
    : driver_(driver), begin_(begin), allocation_(allocation()), process_(getpid()) {}

uint64_t CudaMemory::allocation() const {
  return driver_.attribute<unsigned long long>(CudaDriver::kBufferId, begin_, 0);
}

// An allocation outlives neither its context nor the process.
bool CudaMemory::is_there() const {
  return process_ == getpid() && allocation() == allocation_;
}

// Memory of a pool, and memory that is mapped by cuMemMap(), has no context: the device's primary one serves it.
Result CudaMemory::open() {
  context_ = driver_.attribute<CudaDriver::Context>(CudaDriver::kContext, begin_, nullptr);
  if (context_ == nullptr) {
    const int ordinal = driver_.attribute<int>(CudaDriver::kDeviceOrdinal, begin_, -1);
    if (const Result result = driver_.cuDeviceGet(&device_, ordinal); result != CudaDriver::kSuccess) return result;
    const Result result = driver_.cuDevicePrimaryCtxRetain(&context_, device_);
    if (result != CudaDriver::kSuccess) return result;
    retains_ = true;
  }
  const Current current(driver_, context_);
  if (current.result() != CudaDriver::kSuccess) return current.result();
  return driver_.cuStreamCreate(&stream_, CudaDriver::kNonBlocking);
}

CudaMemory::~CudaMemory() {
  const CancelGuard whole;
  // A child of fork() has no contexts. If the memory has gone, its context may have, too, and the stream with it.
  if (process_ != getpid()) return;
  if (stream_ != nullptr && (retains_ || is_there())) {
    const Current current(driver_, context_);
    if (current.result() == CudaDriver::kSuccess) driver_.cuStreamDestroy(stream_);
  }
  if (retains_) driver_.cuDevicePrimaryCtxRelease(device_);
}

FoundGpuMemory CudaMemory::find(const CudaDriver& driver, const void* address, size_t length) {
  assert(length > 0);
  const CancelGuard whole;
  const auto begin = static_cast<CudaDriver::Address>(reinterpret_cast<uintptr_t>(address));
  if (driver.attribute<unsigned>(CudaDriver::kMemoryType, begin, 0) != CudaDriver::kDeviceMemory) return {};
  if (driver.attribute<unsigned>(CudaDriver::kIsManaged, begin, 0) != 0) return {};
  FoundGpuMemory place;
  std::unique_ptr<CudaMemory> memory(new (std::nothrow) CudaMemory(driver, begin));
  if (memory == nullptr) {
    place.error = ENOMEM;
    return place;
  }
  Result result = memory->open();
  if (result == CudaDriver::kSuccess) {
    const Current current(driver, memory->context_);
    size_t size = 0;
    result = driver.cuMemGetAddressRange(&place.begin, &size, begin);
    place.length = size;
  }
  if (result != CudaDriver::kSuccess) {
    place.error = result == CudaDriver::kOutOfMemory ? ENOMEM : EIO;
    place.problem = driver.name_of(result);
    return place;
  }
  if (begin < place.begin || begin - place.begin > place.length || length > place.length - (begin - place.begin)) {
    place.error = EFAULT;
    return place;
  }
  place.memory = std::move(memory);
  return place;
}

bool CudaMemory::fail(const char* problem) {
  problem_.store(problem, std::memory_order_relaxed);
  return false;
}

// `queue` puts the copy into the stream.
template <typename Queue>
bool CudaMemory::copy(Queue queue) {
  const CancelGuard whole;
  if (process_ != getpid()) return fail("it belongs to the parent of this process: CUDA does not survive a fork()");
  if (!is_there()) return fail("the program has freed it");
  const Current current(driver_, context_);
  Result result = current.result();
  if (result == CudaDriver::kSuccess) result = queue();
  if (result == CudaDriver::kSuccess) result = driver_.cuStreamSynchronize(stream_);
  return result == CudaDriver::kSuccess || fail(driver_.name_of(result));
}

bool CudaMemory::copy_out(const std::byte* from, std::byte* to, size_t size) {
  return copy([&] { return driver_.cuMemcpyDtoHAsync(to, reinterpret_cast<uintptr_t>(from), size, stream_); });
}

bool CudaMemory::copy_in(std::byte* to, const std::byte* from, size_t size) {
  return copy([&] { return driver_.cuMemcpyHtoDAsync(reinterpret_cast<uintptr_t>(to), from, size, stream_); });
}

}  // namespace dapple::soft
