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

#include "provider/common/settings.hpp"
#include "provider/preload/real_dlsym.hpp"

using namespace dapple::preload;

namespace {

constexpr const char* kVerbs = "libibverbs.so.1";

// The library's own function. The look-up uses the library's name instead of the next library in order, because a
// program may have loaded libibverbs for its own plug-in only. The library is loaded, because the program has called
// the function that we interpose.
template <typename Function>
Function real(const char* soname, const char* name, const char* version) {
  void* library = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto function = reinterpret_cast<Function>(real_dlvsym()(library, name, version));
  dlclose(library);
  return function;
}

// A function of libibverbs has been called through this library.
std::atomic<bool> called = false;

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
    if (const auto close = real<int (*)(ibv_context*)>(kVerbs, "ibv_close_device", "IBVERBS_1.1")) close(context);
    errno = error;
    return nullptr;
  }
  errno = saved_errno;
  return context;
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

#pragma GCC visibility push(default)
extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  called.store(true, std::memory_order_relaxed);
  const auto list = real<ibv_device** (*)(int*)>(kVerbs, "ibv_get_device_list", "IBVERBS_1.1");
  if (list == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  return list(num_devices);
}

ibv_context* ibv_open_device(ibv_device* device) {
  called.store(true, std::memory_order_relaxed);
  const auto open = real<ibv_context* (*)(ibv_device*)>(kVerbs, "ibv_open_device", "IBVERBS_1.1");
  if (open == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  return attached(open(device));
}

ibv_context* ibv_import_device(int cmd_fd) {
  called.store(true, std::memory_order_relaxed);
  const auto import = real<ibv_context* (*)(int)>(kVerbs, "ibv_import_device", "IBVERBS_1.10");
  if (import == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  return attached(import(cmd_fd));
}

// The only vendor's library that opens devices by itself. Its attributes are passed on unchanged.
ibv_context* mlx5dv_open_device(ibv_device* device, void* attributes) {
  const auto open = real<ibv_context* (*)(ibv_device*, void*)>("libmlx5.so.1", "mlx5dv_open_device", "MLX5_1.7");
  if (open == nullptr) {
    errno = ENOSYS;
    return nullptr;
  }
  return attached(open(device, attributes));
}

}  // extern "C"
#pragma GCC visibility pop

namespace {

struct Detour {
  const char* name;
  const char* version;
  void* ours;
};

// Our function in place of the one that a program looks up in a library's handle, or null to leave that to the C
// library. Without a version the name means its newest version, which we interpose.
[[gnu::noinline]] void* ours_for(void* handle, const char* name, const char* version) {
  // RTLD_DEFAULT finds our function anyway, and RTLD_NEXT asks for the function behind ours.
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return nullptr;
  static const Detour kDetours[] = {
      {"ibv_get_device_list", "IBVERBS_1.1", reinterpret_cast<void*>(&ibv_get_device_list)},
      {"ibv_open_device", "IBVERBS_1.1", reinterpret_cast<void*>(&ibv_open_device)},
      {"ibv_import_device", "IBVERBS_1.10", reinterpret_cast<void*>(&ibv_import_device)},
      {"mlx5dv_open_device", "MLX5_1.7", reinterpret_cast<void*>(&mlx5dv_open_device)},
  };
  for (const Detour& detour : kDetours) {
    if (strcmp(detour.name, name) != 0 || (version != nullptr && strcmp(detour.version, version) != 0)) continue;
    return real_dlvsym()(handle, name, detour.version) != nullptr ? detour.ours : nullptr;
  }
  return nullptr;
}

bool may_have_detour(const char* name) {
  return name != nullptr &&
         ((name[0] == 'i' && name[1] == 'b' && name[2] == 'v') || (name[0] == 'm' && name[1] == 'l'));
}

}  // namespace

// A program such as NCCL looks up libibverbs' functions in a handle. For RTLD_NEXT the C library finds its caller by
// the return address. So these two functions jump to the C library's functions and leave nothing on the stack.
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
