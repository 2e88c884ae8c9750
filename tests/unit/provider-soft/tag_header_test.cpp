// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_header.hpp"

#include <infiniband/tm_types.h>
#include <string.h>

#include <random>
#include <vector>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

// Bytes as on the wire, in memory of their own: a look beyond their end is an error for AddressSanitizer.
std::vector<std::byte> message(uint8_t operation, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  if (size > 0) bytes[0] = static_cast<std::byte>(operation);
  return bytes;
}

void parse__eager(void**) {
  const std::vector<std::byte> bytes = message(IBV_TMH_EAGER, 16);
  const TagHeader header = parse_tag_header(bytes);
  assert_true(header.kind == TagHeader::Kind::kEager);
  assert_int_equal(header.tag.tag, 0x08090A0B0C0D0E0F);
  assert_int_equal(header.tag.application, 0x04050607);
  assert_int_equal(header.length, 0);
}

void parse__rendezvous(void**) {
  const std::vector<std::byte> bytes = message(IBV_TMH_RNDV, 32);
  const TagHeader header = parse_tag_header(bytes);
  assert_true(header.kind == TagHeader::Kind::kRendezvous);
  assert_int_equal(header.tag.tag, 0x08090A0B0C0D0E0F);
  assert_int_equal(header.address, 0x1011121314151617);
  assert_int_equal(header.rkey, 0x18191A1B);
  assert_int_equal(header.length, 0x1C1D1E1F);
}

void parse__too_short__has_no_tag(void**) {
  for (size_t size = 0; size < 32; ++size) {
    if (size < 16) assert_true(parse_tag_header(message(IBV_TMH_EAGER, size)).kind == TagHeader::Kind::kNone);
    assert_true(parse_tag_header(message(IBV_TMH_RNDV, size)).kind == TagHeader::Kind::kNone);
  }
}

void parse__any_other_operation__has_no_tag(void**) {
  for (unsigned operation = 0; operation < 256; ++operation) {
    if (operation == IBV_TMH_EAGER || operation == IBV_TMH_RNDV) continue;
    assert_true(parse_tag_header(message(static_cast<uint8_t>(operation), 32)).kind == TagHeader::Kind::kNone);
  }
}

void parse__any_bytes(void**) {
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    std::vector<std::byte> bytes(random() % 33);
    for (std::byte& one : bytes) one = static_cast<std::byte>(random());
    if (!bytes.empty() && random() % 2 == 0) bytes[0] = static_cast<std::byte>(random() % 5);
    const TagHeader header = parse_tag_header(bytes);
    if (header.kind != TagHeader::Kind::kNone) assert_true(bytes.size() >= kTagHeaderSize);
    if (header.kind == TagHeader::Kind::kRendezvous) assert_true(bytes.size() == kRendezvousHeaderSize);
  }
}

void end__changes_the_operation_alone(void**) {
  std::vector<std::byte> bytes = message(IBV_TMH_RNDV, 32);
  make_end_of_rendezvous(std::span<std::byte, kRendezvousHeaderSize>(bytes));
  assert_int_equal(static_cast<uint8_t>(bytes[0]), IBV_TMH_FIN);
  const std::vector<std::byte> before = message(IBV_TMH_RNDV, 32);
  assert_memory_equal(bytes.data() + 1, before.data() + 1, 31);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(parse__eager),
      cmocka_unit_test(parse__rendezvous),
      cmocka_unit_test(parse__too_short__has_no_tag),
      cmocka_unit_test(parse__any_other_operation__has_no_tag),
      cmocka_unit_test(parse__any_bytes),
      cmocka_unit_test(end__changes_the_operation_alone),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
