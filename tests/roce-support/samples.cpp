// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/samples.hpp"

#include <cstring>

namespace dapple::roce::test {

std::vector<uint8_t> known_opcodes() {
  std::vector<uint8_t> known;
  for (unsigned opcode = 0; opcode < 256; ++opcode)
    if (opcode_info(static_cast<uint8_t>(opcode)).known) known.push_back(static_cast<uint8_t>(opcode));
  return known;
}

Headers sample_headers(uint8_t opcode) {
  const OpcodeInfo& info = opcode_info(opcode);
  Headers headers;
  headers.opcode = opcode;
  headers.solicited = opcode % 2 == 0;
  headers.migrated = opcode % 3 != 0;
  headers.pkey = 0x8001;
  headers.becn = opcode % 5 == 0;
  headers.fecn = opcode % 7 == 0;
  headers.destination_qpn = 0x123456;
  headers.ack_request = opcode % 2 == 1;
  headers.psn = 0xFEDC00 + opcode;
  if (info.has(kHasReth)) headers.reth = {0x1122334455667788, 0x99AABBCC, 0x00012345};
  if (info.has(kHasAeth)) headers.aeth = {0x1F, 0x654321};
  if (info.has(kHasAtomicEth))
    headers.atomic = {0x8877665544332210, 0xCCBBAA99, 0x0102030405060708, 0xF1F2F3F4F5F6F7F8};
  if (info.has(kHasAtomicAckEth)) headers.atomic_original = 0xA1A2A3A4A5A6A7A8;
  if (info.has(kHasImmediate)) std::memcpy(&headers.immediate, "\xDE\xAD\xBE\xEF", 4);
  if (info.has(kHasIeth)) headers.invalidated_rkey = 0x13572468;
  if (info.has(kHasDeth)) headers.deth = {0x80010000, 0xABCDEF};
  if (info.has(kHasFeth)) headers.flush = 0x12;
  if (info.has(kHasXrceth)) headers.xrc_srq = 0x2468AC;
  return headers;
}

Bytes sample_payload(uint8_t opcode, size_t size) {
  const OpcodeInfo& info = opcode_info(opcode);
  if (!info.has(kHasPayload)) size = 0;
  if (info.operation == Operation::kAtomicWrite) size = 8;
  Bytes payload(size);
  for (size_t i = 0; i < size; ++i) payload[i] = static_cast<std::byte>(i + 1);
  return payload;
}

bool same_headers(const Headers& a, const Headers& b) {
  const OpcodeInfo& info = opcode_info(a.opcode);
  const auto same = [&info](uint16_t bit, bool equal) { return !info.has(bit) || equal; };
  return a.opcode == b.opcode && a.solicited == b.solicited && a.migrated == b.migrated && a.pad == b.pad &&
         a.pkey == b.pkey && a.becn == b.becn && a.fecn == b.fecn && a.destination_qpn == b.destination_qpn &&
         a.ack_request == b.ack_request && a.psn == b.psn &&
         same(kHasReth,
              a.reth.address == b.reth.address && a.reth.rkey == b.reth.rkey && a.reth.length == b.reth.length) &&
         same(kHasAeth, a.aeth.syndrome == b.aeth.syndrome && a.aeth.msn == b.aeth.msn) &&
         same(kHasAtomicEth, a.atomic.address == b.atomic.address && a.atomic.rkey == b.atomic.rkey &&
                                 a.atomic.swap_or_add == b.atomic.swap_or_add &&
                                 a.atomic.compare == b.atomic.compare) &&
         same(kHasAtomicAckEth, a.atomic_original == b.atomic_original) &&
         same(kHasImmediate, a.immediate == b.immediate) && same(kHasIeth, a.invalidated_rkey == b.invalidated_rkey) &&
         same(kHasDeth, a.deth.qkey == b.deth.qkey && a.deth.source_qpn == b.deth.source_qpn) &&
         same(kHasFeth, a.flush == b.flush) && same(kHasXrceth, a.xrc_srq == b.xrc_srq);
}

}  // namespace dapple::roce::test
