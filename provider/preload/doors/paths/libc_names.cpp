// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/libc_names.hpp"

#include <dlfcn.h>

namespace dapple::doors {

constinit LibcNames libc_names;

void* next_function(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

namespace {

[[gnu::constructor(101)]] void find_simple_names() {
#define SIMPLE(name) NEXT(name);
#define OTHER(name)
#include "provider/preload/doors/paths/libc_names.def"
}

}  // namespace
}  // namespace dapple::doors
