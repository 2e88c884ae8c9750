// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The libibverbs of a context, in a process with several copies.
#include <dlfcn.h>

#include "provider/private_api/library.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::verbs_library_of;
using dapple::provider::VerbsLibrary;

verbs_context extended = {};

void* load(const char* file) {
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  return handle;
}

// A context whose query_port is a function of this library.
ibv_context* context_from(void* library) {
  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  void* function = library == nullptr ? nullptr : dlsym(library, "ibv_query_device");
  extended.query_port = reinterpret_cast<decltype(extended.query_port)>(function);
  return &extended.context;
}

void assert_from(const VerbsLibrary& found, void* library) {
  assert_non_null(found.layout);
  assert_null(found.why);
  assert_ptr_equal(reinterpret_cast<void*>(found.set_operations), dlsym(library, "verbs_set_ops"));
}

void library_of__a_context_is_that_of_its_copy(void**) {
  assert_null(verbs_library_of(context_from(nullptr)).layout);
  assert_non_null(verbs_library_of(context_from(nullptr)).why);
  void* renamed = load(DAPPLE_FAKE_RENAMED);
  assert_from(verbs_library_of(context_from(renamed)), renamed);
  void* system = load(DAPPLE_FAKE_VERBS);
  assert_from(verbs_library_of(context_from(renamed)), renamed);
  assert_from(verbs_library_of(context_from(system)), system);
}

void library_of__without_a_sign_is_that_of_the_name(void**) {
  void* system = load(DAPPLE_FAKE_VERBS);
  assert_from(verbs_library_of(context_from(nullptr)), system);
  assert_from(verbs_library_of(nullptr), system);
  // The program's own function, and an address of nothing.
  extended.query_port = [](ibv_context*, uint8_t, ibv_port_attr*, size_t) { return 0; };
  assert_from(verbs_library_of(&extended.context), system);
  extended.query_port = reinterpret_cast<decltype(extended.query_port)>(uintptr_t{64});
  assert_from(verbs_library_of(&extended.context), system);
  // A function of another library.
  void* other = load("libc.so.6");
  extended.query_port = reinterpret_cast<decltype(extended.query_port)>(dlsym(other, "getpid"));
  assert_from(verbs_library_of(&extended.context), system);
}

// The tables of contexts have functions of it.
void library_of__a_context_stays_loaded(void**) {
  void* renamed = load(DAPPLE_FAKE_RENAMED);
  verbs_library_of(context_from(renamed));
  for (int i = 0; i < 4; i++) assert_int_equal(dlclose(renamed), 0);
  assert_ptr_equal(dlopen(DAPPLE_FAKE_RENAMED, RTLD_NOW | RTLD_NOLOAD), renamed);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(library_of__a_context_is_that_of_its_copy),
      cmocka_unit_test(library_of__without_a_sign_is_that_of_the_name),
      cmocka_unit_test(library_of__a_context_stays_loaded),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
