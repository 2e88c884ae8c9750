// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Against dladdr().
#include "provider/source_lines/loaded_code.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::source_lines;

namespace {

const void* at(void* function, size_t offset) {
  return static_cast<const char*>(function) + offset;
}

bool same(const char* one, const char* other) {
  return one == nullptr || other == nullptr ? one == other : strcmp(one, other) == 0;
}

void loaded_code_at__addresses_of_modules__as_dladdr(void**) {
  void* const functions[] = {reinterpret_cast<void*>(&poll), reinterpret_cast<void*>(&qsort),
                             reinterpret_cast<void*>(&dladdr), dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests"),
                             reinterpret_cast<void*>(&same)};
  for (void* const function : functions) {
    assert_non_null(function);
    for (const size_t offset : {0, 1, 5}) {
      Dl_info info;
      assert_int_not_equal(dladdr(at(function, offset), &info), 0);
      const LoadedCode found = loaded_code_at(at(function, offset));
      assert_true(same(found.file, info.dli_fname));
      assert_true(same(found.function, info.dli_sname));
      assert_true(found.base == reinterpret_cast<uintptr_t>(info.dli_fbase));
    }
  }
}

void loaded_code_at__no_module__nothing(void**) {
  const auto memory = std::make_unique<char[]>(1);
  for (const void* const address : {static_cast<const void*>(memory.get()), static_cast<const void*>(nullptr)}) {
    const LoadedCode found = loaded_code_at(address);
    assert_null(found.file);
    assert_null(found.function);
    assert_true(found.base == 0);
    assert_false(module_defines(address, "poll"));
  }
}

void module_defines__symbol_of_another_module__false(void**) {
  // A sanitizer has functions of these names, too.
  void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  const void* const own_poll = dlsym(library, "poll");
  dlclose(library);
  assert_true(module_defines(own_poll, "qsort"));
  assert_false(module_defines(own_poll, "_cmocka_run_group_tests"));
  assert_false(module_defines(own_poll, "qsor"));
  assert_false(module_defines(reinterpret_cast<void*>(&same), "poll"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(loaded_code_at__addresses_of_modules__as_dladdr),
      cmocka_unit_test(loaded_code_at__no_module__nothing),
      cmocka_unit_test(module_defines__symbol_of_another_module__false),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
