// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/fake_cuda.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

struct FakeContext {
  int device;
};

struct FakeStream {
  struct Copy {
    char* to;
    const char* from;
    size_t size;
  };
  CUcontext context;
  std::vector<Copy> copies;
};

namespace {

enum Error { kSuccess, kInvalidValue, kOutOfMemory, kNotInitialized, kInvalidContext = 201, kInvalidHandle = 400 };
enum Type : unsigned { kHost = 1, kDevice = 2 };
constexpr int kDevices = 2;

struct Allocation {
  size_t size;
  CUcontext context;  // null: of a pool
  int device;
  unsigned type;
  bool is_managed;
  char* bytes;
  unsigned long long id;
};

std::recursive_mutex mutex;
std::atomic<pid_t> process{0};  // that has called cuInit()
std::set<CUcontext> contexts;
CUcontext primary[kDevices];
int retained[kDevices];
std::map<CUdeviceptr, Allocation> allocations;
std::set<CUstream> streams;
// All that were ever made, so that no address comes again.
std::vector<std::unique_ptr<FakeContext>> made_contexts;
std::vector<std::unique_ptr<FakeStream>> made_streams;
std::set<ino_t> dmabufs;
unsigned long long next_id = 1;
std::atomic<int> failure{0};
thread_local std::vector<CUcontext> current;

CUcontext make_context(int device) {
  CUcontext made = made_contexts.emplace_back(new FakeContext{device}).get();
  contexts.insert(made);
  return made;
}

CUstream make_stream(CUcontext context) {
  CUstream made = made_streams.emplace_back(new FakeStream{context, {}}).get();
  streams.insert(made);
  return made;
}

size_t whole_pages(size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

int check(bool needs_context = true) {
  if (process != getpid()) return kNotInitialized;
  if (needs_context && (current.empty() || contexts.count(current.back()) == 0)) return kInvalidContext;
  return kSuccess;
}

const Allocation* find(CUdeviceptr pointer, CUdeviceptr* begin = nullptr) {
  auto next = allocations.upper_bound(pointer);
  if (next == allocations.begin()) return nullptr;
  const auto& [start, allocation] = *--next;
  if (begin != nullptr) *begin = start;
  return pointer - start < allocation.size ? &allocation : nullptr;
}

int allocate(CUdeviceptr* pointer, size_t size, unsigned type, bool is_managed, bool is_pool) {
  const std::lock_guard lock(mutex);
  if (const int error = check(); error != kSuccess) return error;
  const int file = memfd_create("fake-gpu", MFD_CLOEXEC);
  const size_t length = whole_pages(size);
  if (file < 0 || ftruncate(file, static_cast<off_t>(length)) != 0) return kOutOfMemory;
  void* bytes = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  const bool is_reached = type == kHost || is_managed;
  void* place = is_reached ? bytes : mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED || place == MAP_FAILED) return kOutOfMemory;
  *pointer = reinterpret_cast<uintptr_t>(place);
  CUcontext context = current.back();
  allocations[*pointer] = {size,       is_pool ? nullptr : context, context->device, type,
                           is_managed, static_cast<char*>(bytes),   next_id++};
  return kSuccess;
}

// The bytes of a range of a GPU that may be copied in this stream now; null if it may not.
char* reach(CUdeviceptr pointer, size_t size, CUstream stream, int& error) {
  error = check();
  if (error != kSuccess) return nullptr;
  CUdeviceptr begin = 0;
  const Allocation* allocation = find(pointer, &begin);
  error = kInvalidHandle;
  if (streams.count(stream) == 0 || stream->context != current.back()) return nullptr;
  error = kInvalidValue;
  if (allocation == nullptr || allocation->type != kDevice || size > allocation->size - (pointer - begin))
    return nullptr;
  error = kInvalidContext;
  if (allocation->device != stream->context->device) return nullptr;
  if (allocation->context != nullptr && allocation->context != stream->context) return nullptr;
  error = failure;
  return error == kSuccess ? allocation->bytes + (pointer - begin) : nullptr;
}

// ThreadSanitizer sees no access of a GPU.
__attribute__((no_sanitize("thread"))) void carry_out(const FakeStream::Copy& copy) {
  volatile char* to = copy.to;
  const volatile char* from = copy.from;
  for (size_t i = 0; i < copy.size; ++i) to[i] = from[i];
}

bool is_dmabuf(int descriptor) {
  struct stat file;
  const std::lock_guard lock(mutex);
  return fstat(descriptor, &file) == 0 && dmabufs.count(file.st_ino) != 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  pid_t none = 0;
  return process.compare_exchange_strong(none, getpid()) || none == getpid() ? kSuccess : kNotInitialized;
}

int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return 101;
  *device = ordinal + 70;  // not the ordinal
  return check(false);
}

int cuDevicePrimaryCtxRetain(CUcontext* context, int device) {
  const std::lock_guard lock(mutex);
  if (const int error = check(false); error != kSuccess) return error;
  const int ordinal = device - 70;
  if (retained[ordinal]++ == 0) primary[ordinal] = make_context(ordinal);
  *context = primary[ordinal];
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  const std::lock_guard lock(mutex);
  if (retained[device - 70] == 0) return kInvalidContext;
  return --retained[device - 70] == 0 ? cuCtxDestroy_v2(primary[device - 70]) : check(false);
}

int cuCtxCreate_v2(CUcontext* context, unsigned, int device) {
  const std::lock_guard lock(mutex);
  if (const int error = check(false); error != kSuccess) return error;
  *context = make_context(device - 70);
  current.push_back(*context);
  return kSuccess;
}

int cuCtxDestroy_v2(CUcontext context) {
  const std::lock_guard lock(mutex);
  if (contexts.erase(context) == 0) return kInvalidContext;
  if (!current.empty() && current.back() == context) current.pop_back();
  std::erase_if(allocations, [&](const auto& entry) { return entry.second.context == context; });
  std::erase_if(streams, [&](CUstream stream) { return stream->context == context; });
  return kSuccess;
}

int cuCtxPushCurrent_v2(CUcontext context) {
  const std::lock_guard lock(mutex);
  if (const int error = check(false); error != kSuccess) return error;
  if (contexts.count(context) == 0) return kInvalidContext;
  current.push_back(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(CUcontext* context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

int cuCtxGetCurrent(CUcontext* context) {
  *context = current.empty() ? nullptr : current.back();
  return check(false);
}

int cuMemAlloc_v2(CUdeviceptr* pointer, size_t size) {
  return allocate(pointer, size, kDevice, false, false);
}

int cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned) {
  return allocate(pointer, size, kDevice, true, false);
}

int cuMemHostAlloc(void** pointer, size_t size, unsigned) {
  CUdeviceptr place = 0;
  const int error = allocate(&place, size, kHost, false, false);
  *pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(place));
  return error;
}

int cuMemAllocAsync(CUdeviceptr* pointer, size_t size, CUstream) {
  return allocate(pointer, size, kDevice, false, true);
}

// The address stays forbidden.
int cuMemFree_v2(CUdeviceptr pointer) {
  const std::lock_guard lock(mutex);
  const auto found = allocations.find(pointer);
  if (found == allocations.end()) return kInvalidValue;
  munmap(found->second.bytes, whole_pages(found->second.size));
  allocations.erase(found);
  return check(false);
}

int cuMemGetAddressRange_v2(CUdeviceptr* begin, size_t* size, CUdeviceptr pointer) {
  const std::lock_guard lock(mutex);
  if (const int error = check(); error != kSuccess) return error;
  const Allocation* allocation = find(pointer, begin);
  if (allocation == nullptr) return kInvalidValue;
  *size = allocation->size;
  return kSuccess;
}

// A file that nobody can map, and that fstatfs() below takes for a dma-buf.
int cuMemGetHandleForAddressRange(void* handle, CUdeviceptr, size_t size, int, unsigned long long) {
  const std::lock_guard lock(mutex);
  const int file = memfd_create("fake-dma-buf", MFD_CLOEXEC);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  struct stat info;
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0 || fstat(file, &info) != 0) return kOutOfMemory;
  const int for_writing = open(path, O_WRONLY | O_CLOEXEC);
  close(file);
  if (for_writing < 0) return kOutOfMemory;
  dmabufs.insert(info.st_ino);
  memcpy(handle, &for_writing, sizeof for_writing);
  return check(false);
}

int cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer) {
  const std::lock_guard lock(mutex);
  if (const int error = check(false); error != kSuccess) return error;
  const Allocation* allocation = find(pointer);
  if (allocation == nullptr) return kInvalidValue;
  switch (attribute) {
    case 1:
      memcpy(value, &allocation->context, sizeof allocation->context);
      return kSuccess;
    case 2:
      memcpy(value, &allocation->type, sizeof allocation->type);
      return kSuccess;
    case 7:
      memcpy(value, &allocation->id, sizeof allocation->id);
      return kSuccess;
    case 8: {
      const unsigned is_managed = allocation->is_managed;
      memcpy(value, &is_managed, sizeof is_managed);
      return kSuccess;
    }
    case 9:
      memcpy(value, &allocation->device, sizeof allocation->device);
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

// Only a stream that waits for no other is right for the device.
int cuStreamCreate(CUstream* stream, unsigned flags) {
  const std::lock_guard lock(mutex);
  if (const int error = check(); error != kSuccess) return error;
  if (flags != 1) return kInvalidValue;
  *stream = make_stream(current.back());
  return kSuccess;
}

int cuStreamDestroy_v2(CUstream stream) {
  const std::lock_guard lock(mutex);
  if (streams.erase(stream) == 0) return kInvalidHandle;
  return check();
}

int cuStreamSynchronize(CUstream stream) {
  const std::lock_guard lock(mutex);
  if (const int error = check(); error != kSuccess) return error;
  if (streams.count(stream) == 0 || stream->context != current.back()) return kInvalidHandle;
  for (const FakeStream::Copy& copy : stream->copies) carry_out(copy);
  stream->copies.clear();
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  const std::lock_guard lock(mutex);
  int error = kSuccess;
  char* bytes = reach(to, size, stream, error);
  if (bytes != nullptr) stream->copies.push_back({bytes, static_cast<const char*>(from), size});
  return error;
}

int cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  const std::lock_guard lock(mutex);
  int error = kSuccess;
  const char* bytes = reach(from, size, stream, error);
  if (bytes != nullptr) stream->copies.push_back({static_cast<char*>(to), bytes, size});
  return error;
}

// The program's own copies.
int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  CUstream stream = nullptr;
  if (const int error = cuStreamCreate(&stream, 1); error != kSuccess) return error;
  const int error = cuMemcpyHtoDAsync_v2(to, from, size, stream);
  return error == kSuccess ? cuStreamSynchronize(stream) | cuStreamDestroy_v2(stream) : error;
}

int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  CUstream stream = nullptr;
  if (const int error = cuStreamCreate(&stream, 1); error != kSuccess) return error;
  const int error = cuMemcpyDtoHAsync_v2(to, from, size, stream);
  return error == kSuccess ? cuStreamSynchronize(stream) | cuStreamDestroy_v2(stream) : error;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == kInvalidValue ? "CUDA_ERROR_INVALID_VALUE" : nullptr;
  return *name == nullptr ? kInvalidValue : kSuccess;
}

char* fake_cuda_bytes(CUdeviceptr pointer) {
  const std::lock_guard lock(mutex);
  CUdeviceptr begin = 0;
  const Allocation* allocation = find(pointer, &begin);
  return allocation == nullptr ? nullptr : allocation->bytes + (pointer - begin);
}

int fake_cuda_streams() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(streams.size());
}

void fake_cuda_fail_copies(int error) {
  failure = error;
}

int fstatfs(int descriptor, struct statfs* status) noexcept {
  constexpr decltype(status->f_type) kDmabufs = 0x444d4142;
  if (syscall(SYS_fstatfs, descriptor, status) != 0) return -1;
  if (is_dmabuf(descriptor)) status->f_type = kDmabufs;
  return 0;
}
}
