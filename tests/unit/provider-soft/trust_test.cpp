// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/trust.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "provider/common/settings.hpp"
#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::trusted_uid;

namespace {

constexpr uid_t kOne = 70001, kTwo = 70002;

struct Case {
  const char* list;
  bool one, two;
};

// A part that is malformed ends the list.
constexpr Case kCases[] = {
    {"70001", true, false},
    {"70001,70002", true, true},
    {"070001,0,70002", true, true},
    {"70001,", true, false},
    {"70001,,70002", true, false},
    {"70001,70002x", true, false},
    {"70001x,70002", false, false},
    {"70001 ,70002", false, false},
    {"70001;70002", false, false},
    {"", false, false},
    {",70001", false, false},
    {" 70001", false, false},
    {"+70001", false, false},
    {"-70001", false, false},
    {"0x11171", false, false},
    {"4295037297", false, false},            // 2^32 + 70001
    {"18446744073709551616", false, false},  // 2^64
    {"18446744073709621617", false, false},  // 2^64 + 70001
};

void trusted_uid__list__is_read_up_to_the_first_mistake(void**) {
  assert_true(geteuid() != kOne && geteuid() != kTwo);
  for (const Case& each : kCases) {
    setenv("DAPPLE_TRUST_UID", each.list, 1);
    dapple::provider::read_settings_again();
    if (trusted_uid(kOne) != each.one || trusted_uid(kTwo) != each.two) fail_msg("wrong for \"%s\"", each.list);
    assert_true(trusted_uid(geteuid()));
    // A number that is too large counts as no user, not even as the largest.
    assert_false(trusted_uid(static_cast<uid_t>(-1)));
    assert_false(trusted_uid(static_cast<uid_t>(-2)));
  }
}

void trusted_uid__no_list__own_user_alone(void**) {
  unsetenv("DAPPLE_TRUST_UID");
  dapple::provider::read_settings_again();
  assert_true(trusted_uid(geteuid()));
  assert_false(trusted_uid(kOne));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(trusted_uid__list__is_read_up_to_the_first_mistake),
      cmocka_unit_test(trusted_uid__no_list__own_user_alone),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
