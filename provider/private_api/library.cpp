// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/library.hpp"

#include <dlfcn.h>

#include "provider/common/loaded_object.hpp"

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

VerbsLibrary refused(const char* why, const char* remedy) {
  return {.layout = nullptr, .set_operations = nullptr, .why = why, .remedy = remedy};
}

}  // namespace

VerbsLibrary examine_verbs_library(void* handle) {
  if (handle == nullptr) return refused("no libibverbs.so.1 is loaded in this process", nullptr);
  const PublicSymbols symbols = public_symbols_of(handle);
  // Older releases have private interfaces of many names, or of none.
  if (!symbols.query_qp_data_in_order) {
    return refused("its libibverbs is too old (needs rdma-core 36 or later)",
                   "update that rdma-core, or let the program load a later libibverbs");
  }
  bool known_version = false;
  for (const Layout& layout : kLayouts) {
    void* function = dlvsym(handle, "verbs_set_ops", layout.symbol_version);
    if (function == nullptr) continue;
    known_version = true;
    const Layout* found = find_layout(layout.symbol_version, symbols);
    if (found != nullptr) return {found, reinterpret_cast<SetOperations>(function)};
  }
  if (known_version) {
    return refused("its libibverbs has a known private interface, but other public functions",
                   "let the program load the libibverbs of rdma-core 36 to 65");
  }
  return refused("its libibverbs has an unknown private interface (known: rdma-core 36 to 65)",
                 "get a newer dapple, or let the program load a libibverbs of a known release");
}

VerbsLibrary verbs_library_of(ibv_context* context) {
  // Our tables will have functions of it.
  return examine_verbs_library(open_verbs_of(context));
}

}  // namespace dapple::provider
