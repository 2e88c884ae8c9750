// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dlfcn.h>

namespace dapple::soft {

// A function of the program or of the libraries that it was linked with. False if they lack it.
template <typename Function>
bool find_in_program(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace dapple::soft
