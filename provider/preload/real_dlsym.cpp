// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/real_dlsym.hpp"

#include <link.h>

#include <atomic>

#include "provider/preload/symbols/symbol_table.hpp"

namespace dapple::preload {
namespace {

bool ends_with_file(const char* path, const char* file) {
  const char* last = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') last = path + 1;
  }
  return same(last, file);
}

// The C library has dlsym() and dlvsym() since 2.34, and libdl had them before.
void* find(const char* name) {
  for (const link_map* library = _r_debug.r_map; library != nullptr; library = library->l_next) {
    if (!ends_with_file(library->l_name, "libc.so.6") && !ends_with_file(library->l_name, "libdl.so.2")) continue;
    if (void* found = SymbolTable(*library).find(name)) return found;
  }
  return nullptr;
}

template <typename Function>
Function kept(std::atomic<Function>& place, const char* name) {
  Function function = place.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = reinterpret_cast<Function>(find(name));
    place.store(function, std::memory_order_release);
  }
  return function;
}

constinit std::atomic<Dlsym> kept_dlsym = nullptr;
constinit std::atomic<Dlvsym> kept_dlvsym = nullptr;

}  // namespace

Dlsym real_dlsym() {
  return kept(kept_dlsym, "dlsym");
}

Dlvsym real_dlvsym() {
  return kept(kept_dlvsym, "dlvsym");
}

}  // namespace dapple::preload
