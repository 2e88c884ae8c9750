// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The modules of this process and their dynamic symbols, as dladdr() finds them. But dladdr() waits for dlopen() and
// dlclose() of other threads, also while those run a library's constructors and destructors. A constructor may wait for
// ever. These functions wait only while the list of modules changes.
#pragma once

#include <cstdint>

namespace dapple::source_lines {

// The texts live as long as the module.
struct LoadedCode {
  const char* file = nullptr;      // of the module; null if no module has the address
  uintptr_t base = 0;              // of the module in memory
  const char* function = nullptr;  // null if no dynamic symbol contains the address
};
LoadedCode loaded_code_at(const void* address);

// Tells whether the module that contains the address defines the dynamic symbol itself.
bool module_defines(const void* address, const char* symbol);

}  // namespace dapple::source_lines
