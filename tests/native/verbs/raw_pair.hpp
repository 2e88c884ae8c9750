// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For tests of raw packet queue pairs: a sender on one end of the veth pair and two receivers on the other, one set at
// a time.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/native/verbs/raw_rig.hpp"

namespace dapple::tests {

inline constexpr uint16_t kPort = 4000, kOtherPort = 4001, kForeignPort = 4002;

extern RawEnd* a;
extern RawEnd* b;
extern ibv_qp* sender;        // of a
extern ibv_qp* receivers[2];  // of b

bool begin_raw();
// The teardown of a test that called begin_raw().
int end_raw(void**);

// Sends a frame to a port of UDP and waits until it has left.
void send_udp(uint16_t port, size_t payload, char mark);
// The next completion of b: a frame with this payload in the slot of its number.
void expect_udp(uint64_t id, const ibv_qp* qp, size_t payload, char mark);

}  // namespace dapple::tests
