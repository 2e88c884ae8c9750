// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A libibverbs that this process has loaded. It may have several copies.
#pragma once

#include <infiniband/verbs.h>

#include "provider/private_api/layout.hpp"

namespace dapple::provider {

// libibverbs' private function that replaces operations of a context: operations points to a table of the layout's size
// in which null means "no change". Not synchronised.
using SetOperations = void (*)(verbs_context* context, const void* operations);

struct VerbsLibrary {
  // Null if the library must not be changed; then why has the reason and remedy the advice, for people. Static; remedy
  // is null if there is none.
  const Layout* layout = nullptr;
  SetOperations set_operations = nullptr;
  const char* why = nullptr;
  const char* remedy = nullptr;
};

// For a library that dlopen() has given, or null for none. From any thread.
VerbsLibrary examine_verbs_library(void* handle);

// The copy of libibverbs that a context came from, which stays loaded.
VerbsLibrary verbs_library_of(ibv_context* context);

}  // namespace dapple::provider
