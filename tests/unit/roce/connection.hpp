// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For tests of reliable connections: requests, their completions, and packets of a peer.
#pragma once

#include "roce/core/syndrome.hpp"
#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::roce::test {

constexpr uint8_t rc_opcode(Operation operation) {
  return opcode_of(Transport::kRc, operation);
}

inline void post(Endpoint& endpoint, const SendRequest& request) {
  assert_int_equal(endpoint.qp->post_send(request), PostError::kNone);
}

inline void assert_sent(const Endpoint& endpoint, size_t number, CompletionStatus status) {
  assert_true(endpoint.sent.size() > number);
  assert_int_equal(endpoint.sent[number].status, status);
}

inline Packet front_of(const Endpoint& endpoint) {
  assert_false(endpoint.link.empty());
  return Pair::parsed(endpoint.link.front());
}

// IBTA 9.7.3.2.1: the syndrome of the next acknowledgement.
inline uint8_t next_syndrome(Endpoint& endpoint, Time now) {
  endpoint.qp->transmit(now, endpoint);
  const Packet packet = front_of(endpoint);
  assert_int_equal(packet.info->operation, Operation::kAcknowledge);
  return packet.headers.aeth.syndrome;
}

inline Headers write_only(uint32_t psn, uint64_t address, uint32_t length) {
  Headers headers;
  headers.opcode = rc_opcode(Operation::kWriteOnly);
  headers.destination_qpn = 0x22;
  headers.psn = psn;
  headers.ack_request = true;
  headers.reth = {address, kKey, length};
  return headers;
}

inline Headers read_request(uint32_t psn, const Reth& range) {
  Headers headers;
  headers.opcode = rc_opcode(Operation::kReadRequest);
  headers.psn = psn;
  headers.reth = range;
  return headers;
}

}  // namespace dapple::roce::test
