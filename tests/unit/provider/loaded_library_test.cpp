// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A process that loads its libibverbs late. A program of its own, because the result is kept.
#include <dlfcn.h>

#include "provider/private_api/library.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::loaded_verbs_library;

void loaded__is_looked_for_until_it_is_there(void**) {
  assert_null(loaded_verbs_library().layout);
  assert_non_null(loaded_verbs_library().why);
  void* handle = dlopen(DAPPLE_FAKE_VERBS, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  const dapple::provider::VerbsLibrary found = loaded_verbs_library();
  assert_non_null(found.layout);
  assert_null(found.why);
  assert_ptr_equal(reinterpret_cast<void*>(found.set_operations), dlsym(handle, "verbs_set_ops"));
  assert_int_equal(dlclose(handle), 0);
  // It stays loaded, and is not examined again.
  for (int i = 0; i < 2; i++) {
    assert_ptr_equal(loaded_verbs_library().layout, found.layout);
    assert_ptr_equal(reinterpret_cast<void*>(loaded_verbs_library().set_operations),
                     reinterpret_cast<void*>(found.set_operations));
  }
  void* again = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  assert_ptr_equal(again, handle);
  assert_int_equal(dlclose(again), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(loaded__is_looked_for_until_it_is_there)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
