// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A RoCEv2 packet's transport part, from the BTH to the pad, as values. The ICRC behind it belongs to the wire
// (icrc.hpp).
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "roce/packet/big_endian.hpp"
#include "roce/packet/opcode.hpp"

namespace dapple::roce {

class Loan;

inline constexpr size_t kBthSize = 12;
inline constexpr size_t kIcrcSize = 4;
// BTH, XRCETH and AtomicETH, the longest combination.
inline constexpr size_t kMaxHeaderSize = 44;
inline constexpr size_t kGrhSize = 40;

// IBTA 9.3.1.
struct Reth {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;
};

// IBTA 9.3.2.
struct Deth {
  uint32_t qkey = 0;
  uint32_t source_qpn = 0;
};

// IBTA 9.3.5.
struct Aeth {
  uint8_t syndrome = 0;
  uint32_t msn = 0;
};

// IBTA 9.3.3. For a fetch-and-add `swap_or_add` is the addend.
struct AtomicEth {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
};

// IBTA 9.2.
struct Bth {
  uint8_t opcode = 0;
  bool solicited = false;
  bool migrated = true;
  uint8_t pad = 0;
  uint16_t pkey = 0xFFFF;
  bool becn = false;
  bool fecn = false;
  uint32_t destination_qpn = 0;
  bool ack_request = false;
  // Of a Read request: the next request is for the rest of the same Read. A reserved bit, which others send as zero and
  // ignore.
  bool continues = false;
  uint32_t psn = 0;
};

// The headers of one packet. Only those that the opcode has are meaningful.
struct Headers : Bth {
  Reth reth;
  Deth deth;
  Aeth aeth;
  AtomicEth atomic;
  uint64_t atomic_original = 0;
  uint32_t immediate = 0;  // as on the wire: programs give and get it in network byte order
  uint32_t invalidated_rkey = 0;
  uint32_t flush = 0;    // IBTA A19: placement type in bits 0 to 3, selectivity in bits 4 and 5
  uint32_t xrc_srq = 0;  // IBTA A14, XRCETH: the number of a shared receive queue
};

// An acknowledgement of everything up to `psn`.
struct Acknowledgement {
  uint32_t psn = 0;
  uint32_t syndrome = 0;
};

struct Packet {
  Headers headers;
  const OpcodeInfo* info = nullptr;
  // Without the pad.
  std::span<const std::byte> payload;
  // Instead of a payload, for some packets of a wire within one host; else null.
  const Loan* loan = nullptr;
  // Comes first, from the queue pair that has sent the packet. Only a wire within one host brings it; else null.
  const Acknowledgement* acknowledgement = nullptr;
  // A UD receive puts this before the payload: the GRH, or the 20 bytes of zero and the IPv4 header. Empty unless the
  // wire gave it.
  std::span<const std::byte> grh;
};

// The only packet of a Send of a reliable connection, with the default P_Key and no headers behind the BTH. Most
// packets are such packets.
struct PlainPacket {
  uint32_t destination_qpn = 0;
  uint32_t psn = 0;
  bool solicited = false;
  bool ack_request = false;
  std::span<const std::byte> payload = {};
  const Acknowledgement* acknowledgement = nullptr;
};

enum class ParseError : uint8_t {
  kNone,
  kTooShort,  // for the BTH, or for the headers that the opcode has
  kVersion,   // a transport header version other than 0
  kUnknownOpcode,
  kForHost,    // kHostOpcode: the packet is for the host: the BTH and the payload are read, and `info` is null
  kPad,        // more pad than payload, or pad where the opcode has no payload
  kUnaligned,  // payload and pad are not a multiple of four bytes
  kPayload,    // the opcode carries none, or an atomic write has other than eight bytes
};

// Reads the bytes between the UDP header and the ICRC. `packet` points into `bytes` afterwards. Every byte may be
// hostile. `headers` is a copy of the first bytes, kMaxHeaderSize of them if there are as many, for packets whose
// sender can still change `bytes`.
ParseError parse(std::span<const std::byte> headers, std::span<const std::byte> bytes, Packet& packet);
inline ParseError parse(std::span<const std::byte> bytes, Packet& packet) {
  return parse(bytes, bytes, packet);
}

// Writes the headers that headers.opcode has, which must be known, and returns their size. `out` has kMaxHeaderSize
// bytes of room. If there is a payload, the caller calls write_pad() next, and then writes the payload.
size_t write_headers(const Headers& headers, std::span<std::byte> out);
// The second part of that function: the headers behind the BTH. Returns their end.
std::byte* write_extended(const OpcodeInfo& info, const Headers& headers, std::byte* to);

// The packets of a message or a response. A message without bytes has one, too.
constexpr uint32_t packets_of(uint64_t length, uint32_t mtu) {
  assert(mtu > 0);
  return length <= mtu ? 1 : static_cast<uint32_t>((length + mtu - 1) / mtu);
}

constexpr uint8_t pad_of(size_t payload_size) {
  return static_cast<uint8_t>(-payload_size % 4);
}

// The bits of the BTH's second, fifth and ninth byte.
inline constexpr unsigned kSolicitedBit = 0x80;
inline constexpr unsigned kMigratedBit = 0x40;
inline constexpr unsigned kPadShift = 4;
inline constexpr unsigned kVersionMask = 0x0F;
inline constexpr uint32_t kFecnBit = 0x80000000;
inline constexpr uint32_t kBecnBit = 0x40000000;
inline constexpr uint32_t kAckRequestBit = 0x80000000;
inline constexpr uint32_t kContinuesBit = 0x40000000;
inline constexpr uint32_t kMask24 = 0xFFFFFF;

// False if it is another packet. The parameters are those of parse().
inline bool parse_plain(std::span<const std::byte> headers, std::span<const std::byte> bytes, PlainPacket& packet) {
  constexpr uint32_t kMask = 0xFF000000 | kVersionMask << 16 | 0xFFFF;
  constexpr uint32_t kPlain = uint32_t{opcode_of(Transport::kRc, Operation::kSendOnly)} << 24 | 0xFFFF;
  if (bytes.size() < kBthSize) return false;
  const uint32_t first = load_be32(headers.data());
  const size_t pad = first >> (16 + kPadShift) & 3;
  const size_t rest = bytes.size() - kBthSize;
  if ((first & kMask) != kPlain || rest % 4 != 0 || pad > rest) return false;
  const uint32_t third = load_be32(headers.data() + 8);
  packet.destination_qpn = load_be32(headers.data() + 4) & kMask24;
  packet.psn = third & kMask24;
  packet.solicited = (first >> 16 & kSolicitedBit) != 0;
  packet.ack_request = (third & kAckRequestBit) != 0;
  packet.payload = bytes.subspan(kBthSize, rest - pad);
  return true;
}

// The first part of write_headers().
inline void write_bth(const Bth& bth, std::byte* to) {
  const unsigned flags =
      (bth.solicited ? kSolicitedBit : 0) | (bth.migrated ? kMigratedBit : 0) | (bth.pad & 3U) << kPadShift;
  store_be32(to, static_cast<uint32_t>(bth.opcode) << 24 | flags << 16 | bth.pkey);
  store_be32(to + 4, (bth.destination_qpn & kMask24) | (bth.fecn ? kFecnBit : 0) | (bth.becn ? kBecnBit : 0));
  store_be32(to + 8,
             (bth.psn & kMask24) | (bth.ack_request ? kAckRequestBit : 0) | (bth.continues ? kContinuesBit : 0));
}

// Writes the pad at `at`. It stores a whole word, so the last bytes of the payload before it are cleared, too.
inline constexpr size_t kRethSize = 16;

inline void write_reth(const Reth& reth, std::byte* to) {
  store_be64(to, reth.address);
  store_be32(to + 8, reth.rkey);
  store_be32(to + 12, reth.length);
}

inline void write_pad(uint8_t pad, std::byte* at) {
  if (pad > 0) std::memset(at + pad - 4, 0, 4);
}

}  // namespace dapple::roce
