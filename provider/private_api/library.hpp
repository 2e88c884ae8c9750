// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The libibverbs that this process has loaded.
#pragma once

#include <infiniband/verbs.h>

#include "provider/private_api/layout.hpp"

namespace dapple::provider {

// libibverbs' private function that replaces operations of a context: operations points to a table of the layout's size
// in which null means "no change". Not synchronised.
using SetOperations = void (*)(verbs_context* context, const void* operations);

struct VerbsLibrary {
  // Null if the library must not be changed; then why has the reason, for people. Static.
  const Layout* layout = nullptr;
  SetOperations set_operations = nullptr;
  const char* why = nullptr;
};

// The first call after the library was loaded examines it. From then on the answer does not change, and the library
// stays loaded. From any thread.
VerbsLibrary loaded_verbs_library();

// The same for a library that dlopen() has given, or null for none.
VerbsLibrary examine_verbs_library(void* handle);

}  // namespace dapple::provider
