// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/endpoint/ep_state.hpp"

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

constexpr int kStates = static_cast<int>(EpState::kDatagrams) + 1;

// A row for each state, in the order of EpState, and in it an x for each state that may follow.
constexpr const char* kFollow[kStates] = {
    "..x...xx...xx.",  // UNCONNECTED
    "...........x..",  // unconfigured
    "x...x......x..",  // RESERVED
    "...........x..",  // unconfigured
    "x..........x..",  // PASSIVE_CONNECTION_PENDING
    "...........x..",  // unconfigured
    "x........x.xxx",  // ACTIVE_CONNECTION_PENDING
    "x..........x..",  // TENTATIVE_CONNECTION_PENDING
    "...........x..",  // unconfigured
    "..........xx..",  // CONNECTED
    "...........x..",  // DISCONNECT_PENDING
    "x..........x..",  // DISCONNECTED
    "x.....x..x.x.x",  // COMPLETION_PENDING
    "...........x..",  // with datagrams
};

void ep_state__each_may_follow_only_these() {
  for (int from = 0; from < kStates; ++from) {
    for (int to = 0; to < kStates; ++to) {
      CHECK_EQUAL(may_follow(EpState(from), EpState(to)), kFollow[from][to] == 'x');
    }
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(ep_state__each_may_follow_only_these),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
