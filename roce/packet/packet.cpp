// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/packet/packet.hpp"

#include <cassert>
#include <cstring>

#include "roce/packet/big_endian.hpp"

namespace dapple::roce {

namespace {

constexpr size_t kAtomicWriteSize = 8;

void read_bth(const std::byte* from, Headers& headers) {
  const unsigned flags = static_cast<unsigned>(from[1]);
  const uint32_t qpn = load_be32(from + 4);
  const uint32_t psn = load_be32(from + 8);
  headers.opcode = static_cast<uint8_t>(from[0]);
  headers.solicited = flags & kSolicitedBit;
  headers.migrated = flags & kMigratedBit;
  headers.pad = static_cast<uint8_t>(flags >> kPadShift & 3);
  headers.pkey = load_be16(from + 2);
  headers.fecn = qpn & kFecnBit;
  headers.becn = qpn & kBecnBit;
  headers.destination_qpn = qpn & kMask24;
  headers.ack_request = psn & kAckRequestBit;
  headers.continues = psn & kContinuesBit;
  headers.psn = psn & kMask24;
}

// The ifs, here and in write_extended(), are in the order of the headers on the wire. One order serves all opcodes.
// IBTA 5.2.1, for FETH before RETH A19.4.1, and for the XRCETH A14.
const std::byte* read_extended(const OpcodeInfo& info, const std::byte* from, Headers& headers) {
  if (info.has(kHasXrceth)) {
    headers.xrc_srq = load_be32(from) & kMask24;
    from += 4;
  }
  if (info.has(kHasDeth)) {
    headers.deth = {load_be32(from), load_be32(from + 4) & kMask24};
    from += 8;
  }
  if (info.has(kHasFeth)) {
    headers.flush = load_be32(from);
    from += 4;
  }
  if (info.has(kHasReth)) {
    headers.reth = {load_be64(from), load_be32(from + 8), load_be32(from + 12)};
    from += 16;
  }
  if (info.has(kHasAtomicEth)) {
    headers.atomic = {load_be64(from), load_be32(from + 8), load_be64(from + 12), load_be64(from + 20)};
    from += 28;
  }
  if (info.has(kHasAeth)) {
    headers.aeth = {static_cast<uint8_t>(from[0]), load_be32(from) & kMask24};
    from += 4;
  }
  if (info.has(kHasAtomicAckEth)) {
    headers.atomic_original = load_be64(from);
    from += 8;
  }
  if (info.has(kHasImmediate)) {
    std::memcpy(&headers.immediate, from, 4);
    from += 4;
  }
  if (info.has(kHasIeth)) {
    headers.invalidated_rkey = load_be32(from);
    from += 4;
  }
  return from;
}

// Of no operation that an engine knows.
ParseError parse_host_packet(std::span<const std::byte> bytes, Packet& packet) {
  if (static_cast<uint8_t>(bytes[0]) != kHostOpcode) return ParseError::kUnknownOpcode;
  read_bth(bytes.data(), packet.headers);
  const size_t rest = bytes.size() - kBthSize;
  if (packet.headers.pad > rest) return ParseError::kPad;
  if (rest % 4 != 0) return ParseError::kUnaligned;
  packet.info = nullptr;
  packet.payload = bytes.subspan(kBthSize, rest - packet.headers.pad);
  packet.grh = {};
  return ParseError::kForHost;
}

}  // namespace

std::byte* write_extended(const OpcodeInfo& info, const Headers& headers, std::byte* to) {
  if (info.has(kHasXrceth)) {
    store_be32(to, headers.xrc_srq & kMask24);
    to += 4;
  }
  if (info.has(kHasDeth)) {
    store_be32(to, headers.deth.qkey);
    store_be32(to + 4, headers.deth.source_qpn & kMask24);
    to += 8;
  }
  if (info.has(kHasFeth)) {
    store_be32(to, headers.flush);
    to += 4;
  }
  if (info.has(kHasReth)) {
    write_reth(headers.reth, to);
    to += kRethSize;
  }
  if (info.has(kHasAtomicEth)) {
    store_be64(to, headers.atomic.address);
    store_be32(to + 8, headers.atomic.rkey);
    store_be64(to + 12, headers.atomic.swap_or_add);
    store_be64(to + 20, headers.atomic.compare);
    to += 28;
  }
  if (info.has(kHasAeth)) {
    store_be32(to, static_cast<uint32_t>(headers.aeth.syndrome) << 24 | (headers.aeth.msn & kMask24));
    to += 4;
  }
  if (info.has(kHasAtomicAckEth)) {
    store_be64(to, headers.atomic_original);
    to += 8;
  }
  if (info.has(kHasImmediate)) {
    std::memcpy(to, &headers.immediate, 4);
    to += 4;
  }
  if (info.has(kHasIeth)) {
    store_be32(to, headers.invalidated_rkey);
    to += 4;
  }
  return to;
}

ParseError parse(std::span<const std::byte> first, std::span<const std::byte> bytes, Packet& packet) {
  if (bytes.size() < kBthSize) return ParseError::kTooShort;
  if ((static_cast<unsigned>(first[1]) & kVersionMask) != 0) return ParseError::kVersion;
  const OpcodeInfo& info = opcode_info(static_cast<uint8_t>(first[0]));
  if (!info.known) return parse_host_packet(bytes, packet);
  const size_t headers_size = kBthSize + info.extended_size;
  if (bytes.size() < headers_size) return ParseError::kTooShort;
  assert(first.size() >= headers_size);

  Headers& headers = packet.headers;
  read_bth(first.data(), headers);
  const size_t rest = bytes.size() - headers_size;
  if (headers.pad > rest || (headers.pad != 0 && !info.has(kHasPayload))) return ParseError::kPad;
  if (rest % 4 != 0) return ParseError::kUnaligned;
  const size_t payload_size = rest - headers.pad;
  if (payload_size != 0 && !info.has(kHasPayload)) return ParseError::kPayload;
  if (info.operation == Operation::kAtomicWrite && payload_size != kAtomicWriteSize) return ParseError::kPayload;

  if (info.extended_size > 0) {
    [[maybe_unused]] const std::byte* end = read_extended(info, first.data() + kBthSize, headers);
    assert(end == first.data() + headers_size);
  }
  packet.info = &info;
  packet.payload = {bytes.data() + headers_size, payload_size};
  packet.grh = {};
  return ParseError::kNone;
}

size_t write_headers(const Headers& headers, std::span<std::byte> out) {
  assert(opcode_info(headers.opcode).known);
  write_bth(headers, out.data());
  const std::byte* end = write_extended(opcode_info(headers.opcode), headers, out.data() + kBthSize);
  assert(end == out.data() + kBthSize + opcode_info(headers.opcode).extended_size && end <= out.data() + out.size());
  return static_cast<size_t>(end - out.data());
}

}  // namespace dapple::roce
