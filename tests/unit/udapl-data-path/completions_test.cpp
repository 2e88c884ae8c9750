// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What an EVD costs.
#include <dirent.h>

#include <vector>

#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::dat;

namespace {

uint32_t open_descriptors() {
  uint32_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count;
}

void evd_create__takes_no_descriptor_before_the_first_sleep() {
  fake_device::reset();
  fake_device::Ia ia(false);
  const uint32_t before = open_descriptors();
  std::vector<Evd*> evds;
  for (int i = 0; i < 100; ++i) evds.push_back(&ia.evd(8, kEvdConnection));
  CHECK_EQUAL(open_descriptors(), before);
  Event event;
  uint32_t more;
  CHECK(!evds[0]->wait(1000, 1, event, more));
  CHECK_EQUAL(open_descriptors(), before + 1);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(evd_create__takes_no_descriptor_before_the_first_sleep),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
