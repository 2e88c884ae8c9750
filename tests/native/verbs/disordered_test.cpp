// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_FAULTS=order=random, which the environment has (CMakeLists.txt): a program that looks at the last byte of an
// RDMA Write finds bytes before it missing, and the completion still means that all are there.
#include <string.h>

#include <initializer_list>

#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/placement_rig.hpp"

using namespace dapple::tests;

namespace {

constexpr int kMissing = 10;
// A busy machine stops the program at the wrong moments in most of them.
constexpr int kMaxRounds = 2000;

// True if bytes were missing when the last one was there.
bool write_and_look(PlacementEnd& sender, size_t size, char value) {
  const char* reached = placement_stage->reached;
  const volatile char* last = reached + size - 1;
  memset(sender.buffer, value, size);
  if (!sender.post(IBV_WR_RDMA_WRITE, 0, static_cast<uint32_t>(size), placement_stage->rkey, 0)) {
    failed("not posted");
    return false;
  }
  const double end = now() + kMomentOfPatience;
  while (*last != value && now() < end) {
  }
  const bool missing = memcmp(reached, sender.buffer, size) != 0;
  if (sender.complete() != IBV_WC_SUCCESS) failed("no completion");
  if (memcmp(reached, sender.buffer, size) != 0) failed("wrong bytes after the completion");
  return missing;
}

void look_at_the_last_byte(PlacementEnd& sender) {
  char value = 0;
  // The last one has several packets.
  for (const size_t size : {16, 100, 1024, 5000}) {
    int missing = 0;
    for (int i = 0; i < kMaxRounds && missing < kMissing; i++) missing += write_and_look(sender, size, ++value) ? 1 : 0;
    if (missing < kMissing) failed("bytes came in their order");
  }
  if (placed() != 0) failed("a Write went without packets");
}

}  // namespace

int main() {
  placement_stage = prepare_stage<PlacementStage>();
  run_placement("by shared memory", look_at_the_last_byte);
  run_placement("over UDP", look_at_the_last_byte, {.target_off = "DAPPLE_SAME_HOST"});
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
