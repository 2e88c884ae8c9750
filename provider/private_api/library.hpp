// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The libibverbs that this process has loaded.
#ifndef DAPPLE_PROVIDER_PRIVATE_API_LIBRARY_HPP
#define DAPPLE_PROVIDER_PRIVATE_API_LIBRARY_HPP

#include <infiniband/verbs.h>

#include "provider/private_api/layout.hpp"

namespace dapple::provider {

// libibverbs' private function that lays operations over a context: operations points to a table of the layout's size
// in which null means "leave it". Not synchronised with anything.
using SetOperations = void (*)(verbs_context* context, const void* operations);

struct VerbsLibrary {
  // Null where the library is not to be touched; then why says so, for people. Static.
  const Layout* layout = nullptr;
  SetOperations set_operations = nullptr;
  const char* why = nullptr;
};

// Looks at the library on the first call when it is loaded; from then on the answer does not change, and the library
// stays loaded. From any thread.
VerbsLibrary loaded_verbs_library();

// The same for a library that dlopen() has given, or null for none.
VerbsLibrary examine_verbs_library(void* handle);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_PRIVATE_API_LIBRARY_HPP
