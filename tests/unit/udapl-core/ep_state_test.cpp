// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ep_state.hpp"

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

void ep_state__every_state_ends_and_only_the_end_leads_back_from_a_connection() {
  using enum EpState;
  for (EpState from : {kUnconnected, kReserved, kPassiveConnectionPending, kActiveConnectionPending,
                       kTentativeConnectionPending, kConnected, kDisconnectPending, kCompletionPending, kDatagrams}) {
    CHECK(may_follow(from, kDisconnected));
    CHECK(!may_follow(from, kUnconfiguredUnconnected));
    CHECK(!may_follow(kDisconnected, from) || from == kUnconnected);
  }
  for (EpState from : {kConnected, kDisconnectPending, kDatagrams}) CHECK(!may_follow(from, kUnconnected));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(ep_state__every_state_ends_and_only_the_end_leads_back_from_a_connection),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
