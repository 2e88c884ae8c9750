// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Trees that look like sysfs. The kernel's answer is tested on real devices, in the softroce tests; here only what is
// no device.
#include "provider/software_device.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::is_software_device;
using dapple::provider::kernel_says_software_driver;
using dapple::provider::sysfs_shows_no_hardware;

char root[64];
char path[128];

const char* in_root(const char* name) {
  snprintf(path, sizeof(path), "%s/%s", root, name);
  return path;
}

int write_file(const char* name) {
  const int fd = open(in_root(name), O_WRONLY | O_CREAT, 0644);
  if (fd < 0) return -1;
  return close(fd);
}

// rxe0 as the kernel shows it, hw0 as a PCI card, siw0 as an older kernel shows siw on that card, link0 a broken link
// to the card, plain a file.
int make_trees(void**) {
  snprintf(root, sizeof(root), "/tmp/dapple-sysfs.XXXXXX");
  if (mkdtemp(root) == nullptr) return -1;
  for (const char* name : {"rxe0", "rxe0/ports", "pci", "hw0", "hw0/ports", "siw0", "link0"}) {
    if (mkdir(in_root(name), 0755) != 0) return -1;
  }
  for (const char* name : {"rxe0/node_type", "rxe0/parent", "hw0/node_type", "siw0/node_type", "plain"}) {
    if (write_file(name) != 0) return -1;
  }
  if (symlink("../pci", in_root("hw0/device")) != 0) return -1;
  if (symlink("../pci", in_root("siw0/device")) != 0) return -1;
  if (symlink("../gone", in_root("link0/device")) != 0) return -1;
  return symlink("rxe0", in_root("class_rxe0"));
}

int remove_trees(void**) {
  char command[96];
  snprintf(command, sizeof(command), "rm -r '%s'", root);
  return system(command);
}

void sysfs_shows_no_hardware__device_without_hardware(void**) {
  assert_true(sysfs_shows_no_hardware(in_root("rxe0")));
  assert_true(sysfs_shows_no_hardware(in_root("class_rxe0")));
}

void sysfs_shows_no_hardware__device_with_hardware(void**) {
  assert_false(sysfs_shows_no_hardware(in_root("hw0")));
  assert_false(sysfs_shows_no_hardware(in_root("siw0")));
  assert_false(sysfs_shows_no_hardware(in_root("link0")));
}

void sysfs_shows_no_hardware__nothing_to_look_at_says_nothing(void**) {
  errno = ENOTTY;
  assert_false(sysfs_shows_no_hardware(""));
  assert_false(sysfs_shows_no_hardware(in_root("absent")));
  assert_false(sysfs_shows_no_hardware(in_root("plain")));
  assert_int_equal(errno, ENOTTY);
}

void kernel_says_software_driver__no_uverbs_file(void**) {
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  assert_true(null_fd >= 0);
  errno = ENOENT;
  assert_false(kernel_says_software_driver(null_fd));
  assert_false(kernel_says_software_driver(-1));
  assert_int_equal(errno, ENOENT);
  close(null_fd);
}

void is_software_device__asks_sysfs(void**) {
  static ibv_device device;
  static ibv_context context;
  context.device = &device;
  context.cmd_fd = -1;
  snprintf(device.ibdev_path, sizeof(device.ibdev_path), "%s", in_root("rxe0"));
  assert_true(is_software_device(context));
  snprintf(device.ibdev_path, sizeof(device.ibdev_path), "%s", in_root("hw0"));
  assert_false(is_software_device(context));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(sysfs_shows_no_hardware__device_without_hardware),
      cmocka_unit_test(sysfs_shows_no_hardware__device_with_hardware),
      cmocka_unit_test(sysfs_shows_no_hardware__nothing_to_look_at_says_nothing),
      cmocka_unit_test(kernel_says_software_driver__no_uverbs_file),
      cmocka_unit_test(is_software_device__asks_sysfs),
  };
  return cmocka_run_group_tests(tests, make_trees, remove_trees);
}
