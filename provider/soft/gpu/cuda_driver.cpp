// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/gpu/cuda_driver.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <memory>
#include <new>

namespace dapple::soft {
namespace {

// As the dynamic linker knows it. Empty if the program has not loaded it.
struct Library {
  char path[4096] = "";
};

bool is_driver(const char* path) {
  constexpr char kName[] = "libcuda.so";
  const char* slash = strrchr(path, '/');
  return strncmp(slash == nullptr ? path : slash + 1, kName, sizeof kName - 1) == 0;
}

// The number of libraries that the process has loaded so far.
unsigned long long count_loads() {
  unsigned long long loads = 0;
  const auto first = [](dl_phdr_info* info, size_t, void* to) {
    *static_cast<unsigned long long*>(to) = info->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(first, &loads);
  return loads;
}

// Asks the linker's list: dlopen() of a library that is not there would look into folders.
void find_library(Library& library) {
  const auto look = [](dl_phdr_info* info, size_t, void* to) {
    if (info->dlpi_name == nullptr || !is_driver(info->dlpi_name)) return 0;
    Library& found = *static_cast<Library*>(to);
    const int length = snprintf(found.path, sizeof found.path, "%s", info->dlpi_name);
    if (length < 0 || static_cast<size_t>(length) >= sizeof found.path) found.path[0] = '\0';
    return 1;
  };
  dl_iterate_phdr(look, &library);
}

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool find_functions(void* library, CudaDriver& driver) {
  return find(library, "cuPointerGetAttribute", driver.cuPointerGetAttribute) &&
         find(library, "cuMemGetAddressRange_v2", driver.cuMemGetAddressRange) &&
         find(library, "cuDeviceGet", driver.cuDeviceGet) &&
         find(library, "cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", driver.cuDevicePrimaryCtxRelease) &&
         find(library, "cuCtxPushCurrent_v2", driver.cuCtxPushCurrent) &&
         find(library, "cuCtxPopCurrent_v2", driver.cuCtxPopCurrent) &&
         find(library, "cuStreamCreate", driver.cuStreamCreate) &&
         find(library, "cuStreamDestroy_v2", driver.cuStreamDestroy) &&
         find(library, "cuStreamSynchronize", driver.cuStreamSynchronize) &&
         find(library, "cuMemcpyHtoDAsync_v2", driver.cuMemcpyHtoDAsync) &&
         find(library, "cuMemcpyDtoHAsync_v2", driver.cuMemcpyDtoHAsync) &&
         find(library, "cuGetErrorName", driver.cuGetErrorName);
}

std::unique_ptr<CudaDriver> load() {
  std::unique_ptr<Library> found(new (std::nothrow) Library);
  if (found == nullptr) return nullptr;
  find_library(*found);
  if (found->path[0] == '\0') return nullptr;
  // Its functions are called until the process ends, so this is never closed.
  void* library = dlopen(found->path, RTLD_LAZY | RTLD_NOLOAD);
  std::unique_ptr<CudaDriver> driver(library == nullptr ? nullptr : new (std::nothrow) CudaDriver);
  if (driver != nullptr && find_functions(library, *driver)) return driver;
  if (library != nullptr) dlclose(library);
  return nullptr;
}

}  // namespace

const CudaDriver* CudaDriver::of_program() {
  constinit static std::atomic<unsigned long long> loads_in_vain{0};
  const CudaDriver* driver = known();
  if (driver != nullptr) return driver;
  const unsigned long long loads = count_loads();
  if (loads == loads_in_vain.load(std::memory_order_relaxed)) return nullptr;
  std::unique_ptr<CudaDriver> found = load();
  if (found == nullptr) {
    loads_in_vain.store(loads, std::memory_order_relaxed);
    return nullptr;
  }
  // Another thread may have been first.
  return known_.compare_exchange_strong(driver, found.get(), std::memory_order_acq_rel) ? found.release() : driver;
}

const char* CudaDriver::name_of(Result result) const {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == kSuccess && name != nullptr ? name : "an unknown error of CUDA";
}

}  // namespace dapple::soft
