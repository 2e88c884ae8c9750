// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/library.hpp"

#include <dlfcn.h>
#include <pthread.h>

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

VerbsLibrary library;

void look_once() {
  // Not loaded by us: a context that is to be attached belongs to a libibverbs that is there already.
  library = examine_verbs_library(dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD));
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
  return {nullptr, nullptr,
          "its libibverbs has a private interface that is not known here (known: rdma-core 36 to 65)"};
}

const VerbsLibrary& loaded_verbs_library() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look_once);
  return library;
}

}  // namespace dapple::provider
