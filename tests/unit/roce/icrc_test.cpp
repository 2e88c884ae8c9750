// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ICRC against packets of independent implementations, and the identification that a receiver infers from it.
#include "roce/packet/icrc.hpp"

#include <cstring>
#include <initializer_list>
#include <string_view>

#include "roce/packet/big_endian.hpp"
#include "tests/roce-support/crc32.hpp"
#include "tests/roce-support/frame.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

// From the IP header to the ICRC. scapy 2.5 built the three of IPv4; zlib computed the one of IPv6, which scapy lacks,
// over the masked headers.
constexpr std::string_view kPackets[] = {
    // Send, identification 0.
    "450000380000400040114e79c0000201c6336407c00112b70024b58504c0ffff0012345680abcdef68656c6c6f2c20776f726c64ccd6f644",
    // Acknowledge with BECN, identification 0xbeef, a type of service, a small hop limit.
    "451a0030beef40000311a4b10a0000020a000001d12312b7001ca15d1140ffff4000001100000fff1f0000074e4e97d5",
    // Write with FECN and a pad.
    "4500004400014000ff1167a50a0000020a000001ffff12b7003078a00a307fff80fffffe0000000000007f0011223344deadbeef0000000561"
    "62636465000000f7eed246",
    // UD Send over IPv6 with a traffic class, a flow label and a UDP checksum.
    "65a123450024110920010db8000000000000000000000001fe80000000000000020000fffe000002c0de12b7002412346430ffff8000001100"
    "0000ff11111111000001fe78000000c41893d4",
};

unsigned digit(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}

Bytes bytes_of(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return bytes;
}

struct Split {
  IcrcAddresses addresses;
  Bytes transport;
  uint32_t icrc = 0;
};

Split split(const Bytes& packet) {
  Split parts;
  IcrcAddresses& addresses = parts.addresses;
  addresses.ipv6 = (packet[0] >> 4) == std::byte{6};
  const size_t address_size = addresses.ipv6 ? 16 : 4;
  const std::byte* from = packet.data() + (addresses.ipv6 ? 8 : 12);
  std::memcpy(addresses.source, from, address_size);
  std::memcpy(addresses.destination, from + address_size, address_size);
  if (!addresses.ipv6) addresses.identification = load_be16(packet.data() + 4);
  const std::byte* udp = from + 2 * address_size;
  addresses.source_port = load_be16(udp);
  addresses.destination_port = load_be16(udp + 2);
  const std::byte* end = packet.data() + packet.size() - kIcrcSize;
  parts.transport.assign(udp + 8, end);
  std::memcpy(&parts.icrc, end, kIcrcSize);
  return parts;
}

uint32_t icrc(const IcrcAddresses& addresses, const Bytes& transport) {
  return icrc_of(icrc_prefix(addresses, transport.size(), crc32), transport, crc32);
}

void crc32__check_value(void**) {
  const char digits[] = "123456789";
  assert_int_equal(~crc32(~0U, reinterpret_cast<const std::byte*>(digits), 9), 0xCBF43926);
}

void icrc_of__packets_of_others__theirs(void**) {
  for (const auto hex : kPackets) {
    const Split parts = split(bytes_of(hex));
    assert_int_equal(icrc(parts.addresses, parts.transport), parts.icrc);
  }
}

// Each bit of the transport counts, except the masked ones.
void icrc_of__one_bit_changed__differs(void**) {
  for (const auto hex : kPackets) {
    Split parts = split(bytes_of(hex));
    for (size_t bit = 0; bit < parts.transport.size() * 8; ++bit) {
      parts.transport[bit / 8] ^= std::byte(1 << bit % 8);
      assert_int_equal(icrc(parts.addresses, parts.transport) == parts.icrc, bit / 8 == 4);
      parts.transport[bit / 8] ^= std::byte(1 << bit % 8);
    }
  }
}

void icrc_of__runt__no_byte_too_far(void**) {
  for (size_t size = 0; size < kBthSize; ++size) {
    const Bytes runt(size);
    icrc(sample_addresses(false), runt);
  }
}

void icrc_identification__every_identification__found(void**) {
  for (const size_t size : {size_t{12}, size_t{16}, size_t{1040}, kBthSize + 4096, size_t{4200}, size_t{65000}}) {
    const Bytes transport(size, std::byte{0x5A});
    IcrcAddresses addresses = sample_addresses(false);
    const uint32_t zero = icrc(addresses, transport);
    assert_int_equal(icrc_identification(zero, zero, size), 0);
    const unsigned step = size > 100 ? 251 : 1;
    for (unsigned identification = 0; identification < 0x10000; identification += step) {
      addresses.identification = static_cast<uint16_t>(identification);
      assert_int_equal(icrc_identification(icrc(addresses, transport), zero, size), identification);
    }
  }
}

void icrc_identification__every_size__found(void**) {
  IcrcAddresses addresses = sample_addresses(false);
  for (size_t size = 12; size < 65000; size += size < 5000 ? 1 : 997) {
    const Bytes transport(size, std::byte{0xC3});
    addresses.identification = 0;
    const uint32_t zero = icrc(addresses, transport);
    addresses.identification = 0x8001;
    assert_int_equal(icrc_identification(icrc(addresses, transport), zero, size), 0x8001);
  }
}

// 2^16 of 2^32 differences belong to an identification: one in 65,536 random ones.
void icrc_identification__random_difference__refused(void**) {
  uint32_t random = 1;
  unsigned taken = 0;
  for (unsigned i = 0; i < 1'000'000; ++i) {
    random = random * 1664525 + 1013904223;
    const uint32_t difference = random ^ random >> 16;
    taken += icrc_identification(difference, 0, 1036) >= 0;
  }
  assert_in_range(taken, 1, 60);
}

// A damaged bit of the transport is never taken for an identification.
void icrc_identification__one_bit_changed__refused(void**) {
  Bytes transport(1036, std::byte{7});
  IcrcAddresses addresses = sample_addresses(false);
  const uint32_t zero = icrc(addresses, transport);
  addresses.identification = 0x1234;
  const uint32_t sent = icrc(addresses, transport);
  addresses.identification = 0;
  for (size_t bit = 5 * 8; bit < transport.size() * 8; ++bit) {
    transport[bit / 8] ^= std::byte(1 << bit % 8);
    assert_int_equal(icrc_identification(sent, icrc(addresses, transport), transport.size()), -1);
    transport[bit / 8] ^= std::byte(1 << bit % 8);
  }
  assert_int_equal(icrc_identification(sent, zero, transport.size()), 0x1234);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(crc32__check_value),
      cmocka_unit_test(icrc_of__packets_of_others__theirs),
      cmocka_unit_test(icrc_of__one_bit_changed__differs),
      cmocka_unit_test(icrc_of__runt__no_byte_too_far),
      cmocka_unit_test(icrc_identification__every_identification__found),
      cmocka_unit_test(icrc_identification__every_size__found),
      cmocka_unit_test(icrc_identification__random_difference__refused),
      cmocka_unit_test(icrc_identification__one_bit_changed__refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
