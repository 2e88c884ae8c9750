// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For tests with one pair of queue pairs at a time.
#pragma once

#include "tests/native/verbs/pair.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

extern Pair* pair;

bool begin(const PairOptions& options);
// The teardown of a test that called begin().
int finish(void**);

// Waits for a completion and compares it. The opcode counts for success only.
void expect(ibv_cq* cq, uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode);
bool readable(int fd, int milliseconds);
// Waits for kPatience at most.
bool becomes_readable(int fd);

}  // namespace dapple::tests
