// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/face_mark.hpp"

#include <stdio.h>
#include <string.h>

#include "tests/unit/provider/cmocka.hpp"

using dapple::doors::show;
using dapple::doors::shown_path;

namespace {

struct Case {
  const char* path;
  const char* shown;  // null: none
};

constexpr Case kCases[] = {
    {"/run/dapple/dapple-face-12ab/sys/class/infiniband", "/sys/class/infiniband"},
    {"(unreachable)/dapple-face-12ab/sys", "/sys"},
    {"/somewhere/dapple-face-1/dev/infiniband", "/dev/infiniband"},
    {"/somewhere/dapple-face-0f", "/"},
    {"/somewhere/dapple-face-zz/dapple-face-12/sys/class", "/sys/class"},
    {"/somewhere/dapple-face-12/system", nullptr},
    {"/somewhere/dapple-face-12/", nullptr},
    {"/somewhere/dapple-face-/sys", nullptr},
    {"/somewhere/dapple-face-12x/sys", nullptr},
    {"/somewhere/my-dapple-face-12/sys", nullptr},
    {"dapple-face-12/sys", nullptr},
    {"/sys/class/net", nullptr},
    {"", nullptr},
};

void shown_path__real_path_of_the_tree_is_replaced(void**) {
  for (const Case& each : kCases) {
    const char* shown = shown_path(each.path);
    if ((shown == nullptr) != (each.shown == nullptr) || (shown != nullptr && strcmp(shown, each.shown) != 0)) {
      fail_msg("%s: %s", each.path, shown == nullptr ? "nothing" : shown);
    }
    char path[128];
    const auto size = static_cast<ssize_t>(strlen(strcpy(path, each.path)));
    const ssize_t left = show(path, size);
    assert_int_equal(left, strlen(path));
    assert_string_equal(path, each.shown != nullptr ? each.shown : each.path);
  }
}

void show__gone_file_loses_the_kernels_word(void**) {
  char path[] = "/somewhere/dapple-face-12/sys/class (deleted)";
  assert_int_equal(show(path, sizeof path - 1), strlen("/sys/class"));
  assert_string_equal(path, "/sys/class");
  char replaced[] = "/run/dapple-face-12/.dapple-next/sys|class|a/b|c (deleted)";
  assert_int_equal(show(replaced, sizeof replaced - 1), strlen("/sys/class/a/b/c"));
  assert_string_equal(replaced, "/sys/class/a/b/c");
  char stage[] = "/run/dapple-face-12/.dapple-next";
  assert_int_equal(show(stage, sizeof stage - 1), strlen("/.dapple-next"));
  assert_string_equal(stage, "/.dapple-next");
  char other[] = "/somewhere/else (deleted)";
  assert_int_equal(show(other, sizeof other - 1), sizeof other - 1);
  assert_string_equal(other, "/somewhere/else (deleted)");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(shown_path__real_path_of_the_tree_is_replaced),
      cmocka_unit_test(show__gone_file_loses_the_kernels_word),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
