// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "ibverbs-glue/memlock.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/provider/cmocka.hpp"

namespace {

namespace fs = std::filesystem;
using dapple::verbs::Memlock;
using dapple::verbs::memlock_needed;
using dapple::verbs::read_memlock;

std::string root;

int make_tree(void**) {
  char folder[] = "/tmp/dapple-proc.XXXXXX";
  if (!mkdtemp(folder)) return -1;
  root = folder;
  fs::create_directories(root + "/proc/self");
  return 0;
}

int remove_tree(void**) {
  fs::remove_all(root);
  return 0;
}

Memlock read_as(const char* status, const char* uid_map) {
  std::ofstream(root + "/proc/self/status") << status;
  fs::remove(root + "/proc/self/uid_map");
  if (uid_map) std::ofstream(root + "/proc/self/uid_map") << uid_map;
  return read_memlock(root);
}

void read__capability_counts_in_the_first_user_namespace_only(void**) {
  constexpr const char* kRoot = "Name:\tx\nVmPin:\t      12 kB\nCapEff:\t000001ffffffffff\n";
  assert_true(read_as(kRoot, "         0          0 4294967295\n").privileged);
  assert_true(read_as(kRoot, nullptr).privileged);
  assert_false(read_as(kRoot, "         0       1000          1\n").privileged);
  assert_false(read_as(kRoot, "").privileged);
  assert_int_equal(read_as(kRoot, nullptr).pinned_bytes, 12 * 1024);
  assert_true(read_as("Name:\tx\nCapEff:\t0000000000004000\n", nullptr).privileged);
  assert_false(read_as("Name:\tx\nCapEff:\t0000000000003fff\n", nullptr).privileged);
  assert_false(read_as("nothing of it", nullptr).privileged);
  assert_int_equal(read_as("VmPin", nullptr).pinned_bytes, 0);
}

void needed__whole_pages_beside_what_is_pinned(void**) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Memlock memlock;
  memlock.soft_bytes = 16 * page;
  memlock.pinned_bytes = 10 * page;
  assert_int_equal(memlock_needed(memlock, 0x10000, 6 * page), 0);
  assert_int_equal(memlock_needed(memlock, 0x10000, 6 * page + 1), 17 * page);
  assert_int_equal(memlock_needed(memlock, 0x10000 - 1, 6 * page), 17 * page);
  assert_int_equal(memlock_needed(memlock, 0x10000, 0), 0);
  memlock.privileged = true;
  assert_int_equal(memlock_needed(memlock, 0x10000, 100 * page), 0);
  memlock.privileged = false;
  memlock.soft_bytes = RLIM_INFINITY;
  assert_int_equal(memlock_needed(memlock, 0x10000, 100 * page), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(read__capability_counts_in_the_first_user_namespace_only),
      cmocka_unit_test(needed__whole_pages_beside_what_is_pinned),
  };
  return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
