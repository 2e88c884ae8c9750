// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The codec: written headers are read again, and damaged bytes are refused for the first reason in the order of
// ParseError.
#include "roce/packet/packet.hpp"

#include "tests/roce-support/samples.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

ParseError error_of(const Bytes& bytes) {
  // A heap block of exactly that size, so that AddressSanitizer detects an access to the first byte after it.
  const Bytes exact(bytes.begin(), bytes.end());
  Packet packet;
  return parse(exact, packet);
}

Bytes sample(uint8_t opcode, size_t payload_size) {
  return transport_of(sample_headers(opcode), sample_payload(opcode, payload_size));
}

// IBTA table 38 and A14, written by hand: the opcode and the size of its headers after the BTH.
void opcode_info__known_opcodes__sizes(void**) {
  constexpr struct {
    uint8_t opcode;
    size_t extended_size;
  } kExpected[] = {
      {0x00, 0},  {0x01, 0},  {0x02, 0},  {0x03, 4},  {0x04, 0},  {0x05, 4},  {0x06, 16}, {0x07, 0}, {0x08, 0},
      {0x09, 4},  {0x0A, 16}, {0x0B, 20}, {0x0C, 16}, {0x0D, 4},  {0x0E, 0},  {0x0F, 4},  {0x10, 4}, {0x11, 4},
      {0x12, 12}, {0x13, 28}, {0x14, 28}, {0x16, 4},  {0x17, 4},  {0x1C, 20}, {0x1D, 16}, {0x20, 0}, {0x21, 0},
      {0x22, 0},  {0x23, 4},  {0x24, 0},  {0x25, 4},  {0x26, 16}, {0x27, 0},  {0x28, 0},  {0x29, 4}, {0x2A, 16},
      {0x2B, 20}, {0x64, 8},  {0x65, 12}, {0xA0, 4},  {0xA1, 4},  {0xA2, 4},  {0xA3, 8},  {0xA4, 4}, {0xA5, 8},
      {0xA6, 20}, {0xA7, 4},  {0xA8, 4},  {0xA9, 8},  {0xAA, 20}, {0xAB, 24}, {0xAC, 20}, {0xAD, 4}, {0xAE, 0},
      {0xAF, 4},  {0xB0, 4},  {0xB1, 4},  {0xB2, 12}, {0xB3, 32}, {0xB4, 32}, {0xB6, 8},  {0xB7, 8},
  };
  const auto known = known_opcodes();
  assert_int_equal(known.size(), std::size(kExpected));
  for (size_t i = 0; i < known.size(); ++i) {
    assert_int_equal(known[i], kExpected[i].opcode);
    const OpcodeInfo& info = opcode_info(known[i]);
    assert_int_equal(info.extended_size, kExpected[i].extended_size);
    assert_int_equal(opcode_of(info.transport, info.operation), known[i]);
    assert_true(kBthSize + info.extended_size <= kMaxHeaderSize);
  }
}

void parse__every_opcode_and_size__what_was_written(void**) {
  for (const uint8_t opcode : known_opcodes()) {
    for (size_t size = 0; size <= 9; ++size) {
      const Bytes payload = sample_payload(opcode, size);
      const Bytes bytes = sample(opcode, size);
      Headers expected = sample_headers(opcode);
      expected.pad = pad_of(payload.size());
      Packet packet;
      assert_int_equal(parse(bytes, packet), ParseError::kNone);
      assert_true(same_headers(packet.headers, expected));
      assert_ptr_equal(packet.info, &opcode_info(opcode));
      assert_int_equal(packet.payload.size(), payload.size());
      assert_int_equal(bytes.size(), kBthSize + packet.info->extended_size + payload.size() + expected.pad);
      if (!payload.empty()) assert_memory_equal(packet.payload.data(), payload.data(), payload.size());
      assert_true(packet.grh.empty());
    }
  }
}

void parse__every_truncation__refused_or_a_shorter_payload(void**) {
  for (const uint8_t opcode : known_opcodes()) {
    const OpcodeInfo& info = opcode_info(opcode);
    const Bytes whole = sample(opcode, 21);
    const size_t headers_size = kBthSize + info.extended_size;
    for (size_t size = 0; size < whole.size(); ++size) {
      const ParseError error = error_of(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)));
      const size_t pad = info.has(kHasPayload) && info.operation != Operation::kAtomicWrite ? 3 : 0;
      if (size < headers_size)
        assert_int_equal(error, ParseError::kTooShort);
      else if (size - headers_size < pad)
        assert_int_equal(error, ParseError::kPad);
      else if ((size - headers_size) % 4 != 0)
        assert_int_equal(error, ParseError::kUnaligned);
      else if (info.operation == Operation::kAtomicWrite)
        assert_int_equal(error, ParseError::kPayload);
      else
        assert_int_equal(error, ParseError::kNone);
    }
  }
}

void parse__first_reason_in_order(void**) {
  Bytes bytes = sample(opcode_of(Transport::kRc, Operation::kWriteOnly), 5);
  bytes[1] |= std::byte{1};
  bytes[0] = std::byte{0xFF};
  assert_int_equal(error_of(bytes), ParseError::kVersion);
  bytes[1] &= std::byte{0xF0};
  assert_int_equal(error_of(bytes), ParseError::kUnknownOpcode);
  assert_int_equal(error_of(Bytes(11)), ParseError::kTooShort);
  assert_int_equal(error_of({}), ParseError::kTooShort);
}

void parse__packet_for_the_host__has_its_payload(void**) {
  Bytes bytes(kBthSize + 8);
  write_bth({.opcode = kHostOpcode, .pad = 3, .destination_qpn = 0x123456, .psn = 0xABCDEF}, bytes.data());
  Packet packet;
  assert_int_equal(parse(bytes, packet), ParseError::kForHost);
  assert_null(packet.info);
  assert_int_equal(packet.headers.destination_qpn, 0x123456);
  assert_int_equal(packet.headers.psn, 0xABCDEF);
  assert_ptr_equal(packet.payload.data(), bytes.data() + kBthSize);
  assert_int_equal(packet.payload.size(), 5);
  assert_int_equal(error_of(Bytes(bytes.begin(), bytes.end() - 1)), ParseError::kUnaligned);
  assert_int_equal(error_of(Bytes(bytes.begin(), bytes.begin() + kBthSize)), ParseError::kPad);
  assert_int_equal(error_of(Bytes(bytes.begin(), bytes.begin() + kBthSize - 1)), ParseError::kTooShort);
  // The transport header version comes first.
  bytes[1] |= std::byte{1};
  assert_int_equal(error_of(bytes), ParseError::kVersion);
}

void parse__pad_where_no_payload__refused(void**) {
  for (const uint8_t opcode : known_opcodes()) {
    if (opcode_info(opcode).has(kHasPayload)) continue;
    Bytes bytes = sample(opcode, 0);
    assert_int_equal(error_of(bytes), ParseError::kNone);
    bytes[1] |= std::byte{0x10};
    assert_int_equal(error_of(bytes), ParseError::kPad);
    bytes[1] &= std::byte{0xCF};
    bytes.resize(bytes.size() + 4);
    assert_int_equal(error_of(bytes), ParseError::kPayload);
    bytes.resize(bytes.size() - 1);
    assert_int_equal(error_of(bytes), ParseError::kUnaligned);
  }
}

void parse__atomic_write__eight_bytes_only(void**) {
  Headers headers = sample_headers(opcode_of(Transport::kRc, Operation::kAtomicWrite));
  for (size_t size = 0; size <= 16; ++size)
    assert_int_equal(error_of(transport_of(headers, Bytes(size))),
                     size == 8 ? ParseError::kNone : ParseError::kPayload);
}

// IBTA A19.4.1: the FLUSH extended header precedes the RETH.
void write_headers__flush__feth_first(void**) {
  const Bytes bytes = sample(opcode_of(Transport::kRc, Operation::kFlush), 0);
  constexpr uint8_t kBehindBth[] = {0,    0,    0,    0x12, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
                                    0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0,    1,    0x23, 0x45};
  assert_int_equal(bytes.size(), 32);
  assert_memory_equal(bytes.data() + kBthSize, kBehindBth, sizeof kBehindBth);
}

void write_headers__fields_wider_than_their_place__masked(void**) {
  Headers headers = sample_headers(opcode_of(Transport::kUd, Operation::kSendOnly));
  headers.destination_qpn = 0xFF000001;
  headers.psn = 0xFF000002;
  headers.deth.source_qpn = 0xFF000003;
  headers.pad = 0xFC;
  headers.fecn = headers.becn = headers.ack_request = headers.continues = false;
  std::byte out[kMaxHeaderSize];
  Packet packet;
  assert_int_equal(parse({out, write_headers(headers, out)}, packet), ParseError::kNone);
  assert_int_equal(packet.headers.destination_qpn, 1);
  assert_int_equal(packet.headers.psn, 2);
  assert_int_equal(packet.headers.deth.source_qpn, 3);
  assert_false(packet.headers.fecn || packet.headers.becn || packet.headers.ack_request || packet.headers.continues);
}

// Packets that crashed other implementations.
void parse__packets_that_broke_others__refused(void**) {
  // 48 bytes of UDP payload with opcode 0xFF for the multicast QPN, without the ICRC.
  Bytes unknown(44);
  unknown[0] = std::byte{0xFF};
  for (size_t i = 5; i < 8; ++i) unknown[i] = std::byte{0xFF};
  assert_int_equal(error_of(unknown), ParseError::kUnknownOpcode);
  // More pad than payload.
  for (const uint8_t opcode : known_opcodes()) {
    Bytes bytes = sample(opcode, 0);
    bytes.resize(kBthSize + opcode_info(opcode).extended_size);
    bytes[1] |= std::byte{0x30};
    assert_int_equal(error_of(bytes), ParseError::kPad);
  }
  // Runts: eight bytes, which were an error message of UDP, and every size below the BTH's.
  for (size_t size = 0; size < kBthSize; ++size) assert_int_equal(error_of(Bytes(size)), ParseError::kTooShort);
  // A datagram of UDP's largest size is parsed: the receiver's buffer is the limit.
  Packet packet;
  const Bytes giant = sample(opcode_of(Transport::kUd, Operation::kSendOnly), 65000);
  assert_int_equal(parse(giant, packet), ParseError::kNone);
  assert_int_equal(packet.payload.size(), 65000);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(opcode_info__known_opcodes__sizes),
      cmocka_unit_test(parse__every_opcode_and_size__what_was_written),
      cmocka_unit_test(parse__every_truncation__refused_or_a_shorter_payload),
      cmocka_unit_test(parse__first_reason_in_order),
      cmocka_unit_test(parse__packet_for_the_host__has_its_payload),
      cmocka_unit_test(parse__pad_where_no_payload__refused),
      cmocka_unit_test(parse__atomic_write__eight_bytes_only),
      cmocka_unit_test(write_headers__flush__feth_first),
      cmocka_unit_test(write_headers__fields_wider_than_their_place__masked),
      cmocka_unit_test(parse__packets_that_broke_others__refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
