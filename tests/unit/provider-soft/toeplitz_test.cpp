// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The examples of Microsoft's "Verifying the RSS Hash Calculation".
#include "provider/soft/raw/toeplitz.hpp"

#include <arpa/inet.h>
#include <string.h>

#include "tests/unit/provider-soft/udp_frame.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::tests;

namespace {

constexpr uint8_t kKey[kHashKeySize] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                        0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                        0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

struct Example {
  int family;
  const char *destination, *source;
  uint16_t destination_port, source_port;
  uint32_t of_addresses, with_ports;
};
constexpr Example kExamples[] = {
    {AF_INET, "161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
    {AF_INET, "65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
    {AF_INET, "12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
    {AF_INET, "209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
    {AF_INET, "202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
    {AF_INET6, "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
    {AF_INET6, "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
    {AF_INET6, "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251, 0x4b61e985, 0x02d1feef},
};

void toeplitz__of_the_examples(void**) {
  for (const Example& example : kExamples) {
    uint8_t input[36];
    const size_t size = example.family == AF_INET ? 4 : 16;
    assert_int_equal(inet_pton(example.family, example.source, input), 1);
    assert_int_equal(inet_pton(example.family, example.destination, input + size), 1);
    const uint16_t ports[] = {htons(example.source_port), htons(example.destination_port)};
    memcpy(input + 2 * size, ports, sizeof ports);
    assert_int_equal(toeplitz(kKey, {input, 2 * size}), example.of_addresses);
    assert_int_equal(toeplitz(kKey, {input, 2 * size + sizeof ports}), example.with_ports);
  }
}

uint32_t hash(FrameBytes bytes, uint64_t fields) {
  RxHash wanted = {.key = {}, .fields = fields};
  memcpy(wanted.key, kKey, sizeof kKey);
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  return hash_of(frame, wanted);
}

void hash_of__the_fields_that_the_frame_has(void**) {
  constexpr uint64_t kIpv4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
  constexpr uint64_t kIpv6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
  constexpr uint64_t kUdp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
  constexpr uint64_t kTcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
  assert_int_equal(hash(udp_frame(1766), kIpv4), 0x323e8fc2);
  assert_int_equal(hash(udp_frame(1766), kIpv4 | kUdp), 0x51ccc178);
  assert_int_equal(hash(udp_frame(1766), kIpv4 | kTcp), 0x323e8fc2);
  assert_int_equal(hash(udp_frame(1766, false, 6), kIpv4 | kTcp), 0x51ccc178);
  assert_int_equal(hash(ipv6_frame(1766), kIpv6 | kUdp), 0x40207d3d);
  assert_int_equal(hash(ipv6_frame(1766), kIpv4), 0);
  assert_int_equal(hash(udp_frame(1766), 0), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(toeplitz__of_the_examples),
      cmocka_unit_test(hash_of__the_fields_that_the_frame_has),
  };
  return cmocka_run_group_tests_name("toeplitz", tests, nullptr, nullptr);
}
