// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled's table of slots, in the test's own process.
#include "provider/dappled/slots.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled;
using namespace dapple::soft;

namespace {

// The first access to a page without memory could end in SIGBUS.
void take__beyond_the_first_slots__has_memory_for_the_counters(void**) {
  Slots slots;
  Problem problem;
  OwnedFd leases[20];
  struct stat status;
  uint32_t slot = 0;
  for (OwnedFd& lease : leases) {
    assert_true(slots.take(slot, lease, problem) == Slots::Grant::kGranted);
    assert_int_equal(fstat(slots.counters_file(), &status), 0);
    assert_true(status.st_blocks * 512 >= static_cast<blkcnt_t>((slot + 1) * kSlotPagesSize));
    assert_non_null(slots.counters().at(slot));
  }
  assert_null(slots.counters().at(slots.group().size()));
}

// dappled needs a descriptor to find out whether an owner lives.
void leave__without_a_descriptor__keeps_the_slot_of_a_living_owner(void**) {
  assert_true(tests::ends_soon());
  Slots slots;
  Problem problem;
  OwnedFd lease;
  uint32_t slot = 0;
  assert_true(slots.take(slot, lease, problem) == Slots::Grant::kGranted);
  rlimit before;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  slots.leave(slot);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_int_equal(slots.in_use(), 1);
  assert_true(slots.tidy());
  lease.reset();
  assert_false(slots.tidy());
  assert_int_equal(slots.in_use(), 0);
}

}  // namespace

int main() {
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(take__beyond_the_first_slots__has_memory_for_the_counters),
      cmocka_unit_test(leave__without_a_descriptor__keeps_the_slot_of_a_living_owner),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
