// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/rig.hpp"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

// The child of a fork makes a thread, which ThreadSanitizer forbids unless it is told otherwise.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "die_after_fork=0";
}

namespace dapple::tests {

Pair* pair = nullptr;

bool begin(const PairOptions& options) {
  pair = make_pair(options);
  if (pair == nullptr) fprintf(stderr, "no pair: %s\n", strerror(errno));
  return pair != nullptr;
}

int finish(void**) {
  delete pair;
  pair = nullptr;
  return 0;
}

void expect(ibv_cq* cq, uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode) {
  ibv_wc completion = {};
  assert_true(wait_for(cq, completion));
  assert_int_equal(completion.wr_id, id);
  assert_int_equal(completion.status, status);
  if (status == IBV_WC_SUCCESS) assert_int_equal(completion.opcode, opcode);
}

bool readable(int fd, int milliseconds) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) == 1;
}

bool becomes_readable(int fd) {
  return readable(fd, static_cast<int>(kPatience * 1000));
}

}  // namespace dapple::tests
