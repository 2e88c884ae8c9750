// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The softroce tests check the kernel's answer on real devices; this test covers contexts that are no device.
#include "provider/device/software_device.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::kernel_says_software_driver;

void kernel_says_software_driver__no_uverbs_file(void**) {
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  assert_true(null_fd >= 0);
  errno = ENOENT;
  assert_false(kernel_says_software_driver(null_fd));
  assert_false(kernel_says_software_driver(-1));
  assert_int_equal(errno, ENOENT);
  close(null_fd);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(kernel_says_software_driver__no_uverbs_file),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
