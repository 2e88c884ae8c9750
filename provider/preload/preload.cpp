// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For programs that do not know of dapple: stands before libibverbs (LD_PRELOAD, by dapple-run) and attaches the
// overlay to each device that is opened. Where that is refused the program goes on without it.
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/dappledv.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

namespace {

constexpr const char* kVerbs = "libibverbs.so.1";

// The library's own function. It is asked for by name, not for what comes next in the order of look-up: a program may
// have loaded libibverbs for a plug-in of its own only. It is there, as somebody has called what we stand before.
template <typename Function>
Function real(const char* soname, const char* name, const char* version) {
  void* library = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto function = reinterpret_cast<Function>(dlvsym(library, name, version));
  dlclose(library);
  return function;
}

// A function of libibverbs has been called by way of this library.
std::atomic<bool> called = false;

bool is_on(const char* variable) {
  const char* value = secure_getenv(variable);
  return value != nullptr && value[0] == '1';
}

ibv_context* attached(ibv_context* context) {
  if (context == nullptr) return nullptr;
  const int saved_errno = errno;
  const bool emulate = is_on("DAPPLE_EMULATE");
  const int error = dappledv_attach(context, emulate ? DAPPLEDV_ATTACH_EMULATE : 0);
  if (is_on("DAPPLE_VERBOSE")) {
    fprintf(stderr, "dapple: %s %s\n", error == 0 ? "attached to" : "not attached to", context->device->name);
  }
  if (error != 0 && emulate) {
    // Without the emulator the program would look right that is not.
    if (const auto close = real<int (*)(ibv_context*)>(kVerbs, "ibv_close_device", "IBVERBS_1.1")) close(context);
    errno = error;
    return nullptr;
  }
  errno = saved_errno;
  return context;
}

// libibverbs loads a driver's library when it is asked for the devices of this machine.
bool has_driver() {
  return dl_iterate_phdr(
             [](dl_phdr_info* object, size_t, void*) { return strstr(object->dlpi_name, "-rdmav") ? 1 : 0; },
             nullptr) != 0;
}

// A program that has asked, and not here, has the functions from dlsym() in libibverbs' handle.
[[gnu::destructor]] void tell_of_detour() {
  if (called.load(std::memory_order_relaxed) || !has_driver()) return;
  fprintf(stderr,
          "dapple: %s has libibverbs' functions from dlsym(), so the overlay is on none of its devices; let it call "
          "dappledv_attach()\n",
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

// The one vendor's library that opens devices by itself. Its attributes are passed on unseen.
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
