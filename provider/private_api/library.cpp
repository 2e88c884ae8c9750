// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/library.hpp"

#include <dlfcn.h>

#include <atomic>

namespace dapple::provider {
namespace {

PublicSymbols public_symbols_of(void* handle) {
  return {
      .query_qp_data_in_order = dlsym(handle, "ibv_query_qp_data_in_order") != nullptr,
      .query_port_speed = dlsym(handle, "ibv_query_port_speed") != nullptr,
      .alloc_buf = dlsym(handle, "ibv_alloc_buf") != nullptr,
      .create_comp_cntr = dlsym(handle, "ibv_create_comp_cntr") != nullptr,
  };
}

// No lock: the caller may hold the loader's lock, and a child of fork() would find our lock held. Threads that look at
// the same time see the same library, and store the same.
constinit std::atomic<bool> examined = false;
constinit std::atomic<const Layout*> kept_layout = nullptr;
constinit std::atomic<SetOperations> kept_set_operations = nullptr;
constinit std::atomic<const char*> kept_why = nullptr;

void keep(const VerbsLibrary& library) {
  kept_layout.store(library.layout, std::memory_order_relaxed);
  kept_set_operations.store(library.set_operations, std::memory_order_relaxed);
  kept_why.store(library.why, std::memory_order_relaxed);
  examined.store(true, std::memory_order_release);
}

}  // namespace

VerbsLibrary examine_verbs_library(void* handle) {
  if (handle == nullptr) return {nullptr, nullptr, "no libibverbs.so.1 is loaded in this process"};
  const PublicSymbols symbols = public_symbols_of(handle);
  bool known_version = false;
  for (const Layout& layout : kLayouts) {
    void* function = dlvsym(handle, "verbs_set_ops", layout.symbol_version);
    if (function == nullptr) continue;
    known_version = true;
    const Layout* found = find_layout(layout.symbol_version, symbols);
    if (found != nullptr) return {found, reinterpret_cast<SetOperations>(function), nullptr};
  }
  if (known_version)
    return {nullptr, nullptr, "its libibverbs has a known private interface, but other public functions"};
  return {nullptr, nullptr, "its libibverbs has an unknown private interface (known: rdma-core 36 to 65)"};
}

VerbsLibrary loaded_verbs_library() {
  if (examined.load(std::memory_order_acquire)) {
    return {kept_layout.load(std::memory_order_relaxed), kept_set_operations.load(std::memory_order_relaxed),
            kept_why.load(std::memory_order_relaxed)};
  }
  // Not loaded by us: a context that is to be attached belongs to a libibverbs that is there already.
  void* handle = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const VerbsLibrary library = examine_verbs_library(handle);
  if (handle != nullptr) keep(library);
  return library;
}

}  // namespace dapple::provider
