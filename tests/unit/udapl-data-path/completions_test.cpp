// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What an EVD of completions costs, and what looks at it.
#include <dirent.h>

#include <vector>

#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/srq.hpp"

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

// Receives of many endpoints complete on one EVD, which is looked at once.
void srq_query__with_many_endpoints_on_one_evd() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& recv = ia.evd(64);
  Evd& request = ia.evd(64);
  Evd& connect = ia.evd(8, kEvdConnection);
  Srq* srq = nullptr;
  {
    std::lock_guard guard(control_mutex());
    srq = Srq::create(ia.get(), ia.pz(), {.max_recv_dtos = 32, .max_recv_iov = 1}).value();
  }
  for (int i = 0; i < 50; ++i) ia.connected_ep({&recv, &request, &connect}, {}, srq);
  constexpr auto kPolls = static_cast<size_t>(EvdCounter::kPoll);
  const uint64_t before = recv.counters().at(kPolls);
  std::lock_guard guard(control_mutex());
  CHECK_EQUAL(srq->count().outstanding, 0);
  CHECK_EQUAL(recv.counters().at(kPolls) - before, 1);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(evd_create__takes_no_descriptor_before_the_first_sleep),
      TEST_IN_CHILD(srq_query__with_many_endpoints_on_one_evd),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
