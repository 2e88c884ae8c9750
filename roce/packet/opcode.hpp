// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The opcodes of the Base Transport Header and their meaning: transport, operation, place in the message, headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::roce {

// IBTA 9.2.1: the upper three bits of the opcode.
enum class Transport : uint8_t { kRc = 0, kUc = 1, kRd = 2, kUd = 3, kCongestion = 4, kXrc = 5 };

// IBTA table 38: the lower five bits.
enum class Operation : uint8_t {
  kSendFirst = 0,
  kSendMiddle = 1,
  kSendLast = 2,
  kSendLastImmediate = 3,
  kSendOnly = 4,
  kSendOnlyImmediate = 5,
  kWriteFirst = 6,
  kWriteMiddle = 7,
  kWriteLast = 8,
  kWriteLastImmediate = 9,
  kWriteOnly = 10,
  kWriteOnlyImmediate = 11,
  kReadRequest = 12,
  kReadResponseFirst = 13,
  kReadResponseMiddle = 14,
  kReadResponseLast = 15,
  kReadResponseOnly = 16,
  kAcknowledge = 17,
  kAtomicAcknowledge = 18,
  kCompareSwap = 19,
  kFetchAdd = 20,
  kSendLastInvalidate = 22,
  kSendOnlyInvalidate = 23,
  kFlush = 28,
  kAtomicWrite = 29,
};

constexpr uint8_t opcode_of(Transport transport, Operation operation) {
  return static_cast<uint8_t>(static_cast<unsigned>(transport) << 5 | static_cast<unsigned>(operation));
}

// IBTA 9.2.1 leaves 0xC0 to 0xFF to manufacturers. With this one the hosts of two engines tell each other what concerns
// no engine. The BTH is like that of other packets.
inline constexpr uint8_t kHostOpcode = 0xDA;

// The parts of an operation, as sets of these bits.
enum OpcodeBit : uint16_t {
  kHasReth = 1 << 0,
  kHasAeth = 1 << 1,
  kHasAtomicEth = 1 << 2,
  kHasAtomicAckEth = 1 << 3,
  kHasImmediate = 1 << 4,
  kHasIeth = 1 << 5,
  kHasDeth = 1 << 6,
  kHasFeth = 1 << 7,
  kHasPayload = 1 << 8,
  kStarts = 1 << 9,       // first or only packet of its message
  kEnds = 1 << 10,        // last or only
  kResponse = 1 << 11,    // goes from the responder to the requester
  kIsWrite = 1 << 12,     // of an RDMA Write
  kIsAnswered = 1 << 13,  // the responder answers it by a response, not only by an acknowledgement
  kHasXrceth = 1 << 14
};

struct OpcodeInfo {
  bool known = false;
  Transport transport{};
  Operation operation{};
  uint16_t bits = 0;
  // Size of the extended transport headers, between the BTH and the payload, in bytes.
  uint8_t extended_size = 0;

  constexpr bool has(uint16_t bit) const { return (bits & bit) != 0; }
};

// `known` is false for opcodes that no transport of ours has.
const OpcodeInfo& opcode_info(uint8_t opcode);

}  // namespace dapple::roce
