// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For unchanged programs: interposes libibverbs (LD_PRELOAD, by dapple-run) and attaches the overlay to each device
// that is opened. If the overlay is refused, the program runs without it.
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/dappledv.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "provider/common/loaded_object.hpp"
#include "provider/common/settings.hpp"
#include "provider/preload/fronts.hpp"
#include "provider/preload/real_dlsym.hpp"
#include "provider/preload/real_function.hpp"

using namespace dapple::preload;

namespace {

constexpr const char* kVerbs = "libibverbs.so.1";

// A function of libibverbs has been called through this library.
std::atomic<bool> called = false;

void close_device(ibv_context* context) {
  void* library = dapple::provider::open_verbs_of(context);
  if (library == nullptr) return;
  const auto close = reinterpret_cast<int (*)(ibv_context*)>(real_dlvsym()(library, "ibv_close_device", "IBVERBS_1.1"));
  if (close != nullptr) close(context);
  dlclose(library);
}

ibv_context* attached(ibv_context* context) {
  if (context == nullptr) return nullptr;
  const int saved_errno = errno;
  const bool emulate = dapple::provider::is_on(dapple::provider::settings().emulate);
  const int error = dappledv_attach(context, emulate ? DAPPLEDV_ATTACH_EMULATE : 0);
  if (dapple::provider::is_on(dapple::provider::settings().verbose)) {
    fprintf(stderr, "dapple: %s %s\n", error == 0 ? "attached to" : "not attached to", context->device->name);
  }
  if (error != 0 && emulate) {
    // Without the emulator a wrong program would look right.
    close_device(context);
    errno = error;
    return nullptr;
  }
  errno = saved_errno;
  return context;
}

template <typename Result>
Result* lacks_function() {
  errno = ENOSYS;
  return nullptr;
}

using ListDevices = ibv_device** (*)(int* num_devices);
using OpenDevice = ibv_context* (*)(ibv_device* device);
using ImportDevice = ibv_context* (*)(int cmd_fd);
using OpenVendorsDevice = ibv_context* (*)(ibv_device* device, void* attributes);

ibv_device** list_devices(ListDevices list, int* num_devices) {
  called.store(true, std::memory_order_relaxed);
  return list == nullptr ? lacks_function<ibv_device*>() : list(num_devices);
}

ibv_context* open_device(OpenDevice open, ibv_device* device) {
  called.store(true, std::memory_order_relaxed);
  return open == nullptr ? lacks_function<ibv_context>() : attached(open(device));
}

ibv_context* import_device(ImportDevice import, int cmd_fd) {
  called.store(true, std::memory_order_relaxed);
  return import == nullptr ? lacks_function<ibv_context>() : attached(import(cmd_fd));
}

ibv_context* open_vendors_device(OpenVendorsDevice open, ibv_device* device, void* attributes) {
  return open == nullptr ? lacks_function<ibv_context>() : attached(open(device, attributes));
}

// libibverbs loads a driver's library when a program asks for the devices of this machine.
bool has_driver() {
  return dl_iterate_phdr(
             [](dl_phdr_info* object, size_t, void*) { return strstr(object->dlpi_name, "-rdmav") ? 1 : 0; },
             nullptr) != 0;
}

// A program that has listed devices, but not through this library, has found the functions in another way.
[[gnu::destructor]] void tell_of_detour() {
  if (called.load(std::memory_order_relaxed) || !has_driver()) return;
  fprintf(stderr,
          "dapple: %s does not get libibverbs' functions from the dynamic loader, so its devices lack the overlay; let "
          "the program call dappledv_attach()\n",
          program_invocation_short_name);
}

}  // namespace

#define DAPPLE_REAL(function, soname, version) \
  reinterpret_cast<decltype(&(function))>(real_function(soname, #function, version, __builtin_return_address(0)))

#pragma GCC visibility push(default)
extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  return list_devices(DAPPLE_REAL(ibv_get_device_list, kVerbs, "IBVERBS_1.1"), num_devices);
}

ibv_context* ibv_open_device(ibv_device* device) {
  return open_device(DAPPLE_REAL(ibv_open_device, kVerbs, "IBVERBS_1.1"), device);
}

ibv_context* ibv_import_device(int cmd_fd) {
  return import_device(DAPPLE_REAL(ibv_import_device, kVerbs, "IBVERBS_1.10"), cmd_fd);
}

// The only vendor's library that opens devices by itself. Its attributes are passed on unchanged.
ibv_context* mlx5dv_open_device(ibv_device* device, void* attributes) {
  return open_vendors_device(DAPPLE_REAL(mlx5dv_open_device, "libmlx5.so.1", "MLX5_1.7"), device, attributes);
}

}  // extern "C"
#pragma GCC visibility pop

namespace {

struct Detour {
  const char* name;
  const char* version;
  void* (*front_of)(void* function);
};

template <auto kCall>
void* front_of(void* function) {
  using Function = typename Fronts<kCall>::Function;
  return reinterpret_cast<void*>(Fronts<kCall>::get(reinterpret_cast<Function>(function)));
}

constexpr Detour kDetours[] = {
    {"ibv_get_device_list", "IBVERBS_1.1", front_of<list_devices>},
    {"ibv_open_device", "IBVERBS_1.1", front_of<open_device>},
    {"ibv_import_device", "IBVERBS_1.10", front_of<import_device>},
    {"mlx5dv_open_device", "MLX5_1.7", front_of<open_vendors_device>},
};

// Tells whether a function is one of those that this library exports.
bool is_ours(void* function) {
  Dl_info found, own;
  return dladdr(function, &found) != 0 && dladdr(reinterpret_cast<const void*>(&is_ours), &own) != 0 &&
         found.dli_fbase == own.dli_fbase;
}

// Our function in place of the one that a program looks up in a library's handle, or null to leave that to the C
// library. Without a version the name means its newest version, which we interpose.
[[gnu::noinline]] void* ours_for(void* handle, const char* name, const char* version) {
  // RTLD_DEFAULT finds our function anyway, and RTLD_NEXT asks for the function behind ours.
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return nullptr;
  for (const Detour& detour : kDetours) {
    if (strcmp(detour.name, name) != 0 || (version != nullptr && strcmp(detour.version, version) != 0)) continue;
    void* function = real_dlvsym()(handle, name, detour.version);
    return function == nullptr || is_ours(function) ? nullptr : detour.front_of(function);
  }
  return nullptr;
}

bool may_have_detour(const char* name) {
  return name != nullptr &&
         ((name[0] == 'i' && name[1] == 'b' && name[2] == 'v') || (name[0] == 'm' && name[1] == 'l'));
}

}  // namespace

// A program such as NCCL looks up libibverbs' functions in a handle. For RTLD_NEXT the C library finds its caller by
// the return address. So dlsym() and dlvsym() jump to the C library's functions and leave nothing on the stack.
#if defined(__powerpc64__)

// For dlsym_ppc64le.S.
extern "C" {

void* dapple_detour_of_dlsym(void* handle, const char* name) {
  return may_have_detour(name) ? ours_for(handle, name, nullptr) : nullptr;
}
void* dapple_detour_of_dlvsym(void* handle, const char* name, const char* version) {
  return may_have_detour(name) ? ours_for(handle, name, version) : nullptr;
}
void* dapple_real_dlsym() {
  return reinterpret_cast<void*>(real_dlsym());
}
void* dapple_real_dlvsym() {
  return reinterpret_cast<void*>(real_dlvsym());
}

}  // extern "C"

#else

#if defined(__clang__)
#define DAPPLE_JUMP [[clang::musttail]]
#define DAPPLE_JUMPS
#else
#define DAPPLE_JUMP
#define DAPPLE_JUMPS [[gnu::optimize("O2", "optimize-sibling-calls", "no-stack-protector"), gnu::no_sanitize("all")]]
#endif

#pragma GCC visibility push(default)
extern "C" {

DAPPLE_JUMPS void* dlsym(void* handle, const char* name) noexcept {
  if (may_have_detour(name)) {
    if (void* ours = ours_for(handle, name, nullptr)) return ours;
  }
  DAPPLE_JUMP return real_dlsym()(handle, name);
}

DAPPLE_JUMPS void* dlvsym(void* handle, const char* name, const char* version) noexcept {
  if (may_have_detour(name)) {
    if (void* ours = ours_for(handle, name, version)) return ours;
  }
  DAPPLE_JUMP return real_dlvsym()(handle, name, version);
}

}  // extern "C"
#pragma GCC visibility pop

#endif
