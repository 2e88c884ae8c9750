// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The syndrome of the AETH (IBTA 9.7.5.1.2, tables 45 to 47) and the times of its five-bit codes.
#pragma once

#include <cstdint>

#include "roce/host/ports.hpp"

namespace dapple::roce {

enum class SyndromeKind : uint8_t { kAck = 0, kRnrNak = 1, kReserved = 2, kNak = 3 };

enum class NakCode : uint8_t { kSequence = 0, kInvalidRequest = 1, kRemoteAccess = 2, kRemoteOperation = 3 };

constexpr SyndromeKind syndrome_kind(uint8_t syndrome) {
  return static_cast<SyndromeKind>(syndrome >> 5 & 3);
}
constexpr uint8_t syndrome_value(uint8_t syndrome) {
  return syndrome & 31;
}

// IBTA 9.7.7.2: a credit count of 31 means that the responder gives none: end-to-end flow control is off.
inline constexpr uint8_t kAckSyndrome = 31;
constexpr uint8_t rnr_syndrome(uint8_t timer) {
  return static_cast<uint8_t>(1 << 5 | (timer & 31));
}
constexpr uint8_t nak_syndrome(NakCode code) {
  return static_cast<uint8_t>(3 << 5 | static_cast<unsigned>(code));
}

// IBTA table 46.
constexpr Time rnr_time(uint8_t code) {
  constexpr uint32_t kHundredthsOfMs[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                            48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                            2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return kHundredthsOfMs[code & 31] * Time{10'000};
}

// IBTA 9.7.6.1.3: 4.096 us * 2^code; 0 means no limit.
constexpr Time ack_time(uint8_t code) {
  return (code & 31) == 0 ? kNever : Time{4096} << (code & 31);
}

}  // namespace dapple::roce
