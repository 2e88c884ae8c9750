// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of send requests, in groups.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "roce/host/qp_attributes.hpp"

namespace dapple::roce {

class OpcodeSet {
 public:
  constexpr OpcodeSet(std::initializer_list<SendOpcode> opcodes) {
    for (const SendOpcode opcode : opcodes) bits_ |= 1u << static_cast<unsigned>(opcode);
  }
  constexpr bool has(SendOpcode opcode) const {
    return static_cast<unsigned>(opcode) < 32 && (bits_ >> static_cast<unsigned>(opcode) & 1) != 0;
  }
  friend constexpr OpcodeSet operator-(OpcodeSet a, OpcodeSet b) {
    a.bits_ &= ~b.bits_;
    return a;
  }
  friend constexpr OpcodeSet operator|(OpcodeSet a, OpcodeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  uint32_t bits_ = 0;
};

inline constexpr OpcodeSet kSends = {SendOpcode::kSend, SendOpcode::kSendImmediate, SendOpcode::kSendInvalidate};
inline constexpr OpcodeSet kWrites = {SendOpcode::kWrite, SendOpcode::kWriteImmediate};
// The responder answers with data: RDMA Reads, atomics, and requests that the kernel's rxe answers like a Read.
inline constexpr OpcodeSet kWithResponse = {SendOpcode::kRead, SendOpcode::kCompareSwap, SendOpcode::kFetchAdd,
                                            SendOpcode::kFlush, SendOpcode::kAtomicWrite};
// Nothing is sent.
inline constexpr OpcodeSet kLocal = {SendOpcode::kLocalInvalidate, SendOpcode::kBindWindow};

// IBTA table 38.
inline constexpr OpcodeSet kOfDatagrams = {SendOpcode::kSend, SendOpcode::kSendImmediate};
inline constexpr OpcodeSet kOfUnreliable = kOfDatagrams | kWrites | kLocal;
inline constexpr OpcodeSet kOfReliable = kOfUnreliable | kWithResponse | OpcodeSet{SendOpcode::kSendInvalidate};
inline constexpr OpcodeSet kOfExtended = kOfReliable - OpcodeSet{SendOpcode::kFlush, SendOpcode::kAtomicWrite};

// The operations of a queue pair's transport.
constexpr OpcodeSet operations_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return kOfReliable;
    case QpType::kUc:
      return kOfUnreliable;
    case QpType::kUd:
      return kOfDatagrams;
    case QpType::kRawPacket:
      return {SendOpcode::kSend};
    case QpType::kXrcSend:
      return kOfExtended;
    case QpType::kXrcReceive:
      break;
  }
  return {};
}

constexpr bool wants_response(SendOpcode opcode) {
  return kWithResponse.has(opcode);
}
constexpr bool is_local(SendOpcode opcode) {
  return kLocal.has(opcode);
}

}  // namespace dapple::roce
