// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/library.hpp"

#include <dlfcn.h>
#include <stdio.h>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::provider;

namespace {

VerbsLibrary examine(const char* release) {
  char path[512];
  snprintf(path, sizeof(path), "%s/libfake-verbs-%s.so", DAPPLE_FAKE_VERBS, release);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  return examine_verbs_library(handle);
}

void assert_known(const char* release, size_t layout) {
  const VerbsLibrary library = examine(release);
  assert_ptr_equal(library.layout, &kLayouts[layout]);
  assert_non_null(reinterpret_cast<void*>(library.set_operations));
}

void assert_unknown(const VerbsLibrary& library) {
  assert_null(library.layout);
  assert_null(reinterpret_cast<void*>(library.set_operations));
  assert_non_null(library.why);
}

void examine__known_releases_told_apart(void**) {
  assert_known("44", 0);
  assert_known("57", 1);
  assert_known("59", 2);
  assert_known("62", 3);  // same version of the private symbols as 59
  assert_known("64", 4);
  assert_known("65", 5);
}

void examine__unknown_releases_refused(void**) {
  assert_unknown(examine("35"));    // the private version of 36, but an older public interface
  assert_unknown(examine("66"));    // a private version of the future
  assert_unknown(examine("fork"));  // an old private version with a new public interface
}

void examine__other_libraries_refused(void**) {
  assert_unknown(examine_verbs_library(nullptr));
  assert_unknown(examine_verbs_library(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD)));
}

// The release of this machine.
void examine__installed_library_known(void**) {
  void* handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) skip_test("no libibverbs");
  assert_non_null(examine_verbs_library(handle).layout);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(examine__known_releases_told_apart),
      cmocka_unit_test(examine__unknown_releases_refused),
      cmocka_unit_test(examine__other_libraries_refused),
      cmocka_unit_test(examine__installed_library_known),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
