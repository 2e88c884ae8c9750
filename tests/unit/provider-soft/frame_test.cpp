// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/frame.hpp"

#include <arpa/inet.h>

#include <initializer_list>

#include "provider/soft/raw/checksums.hpp"
#include "tests/unit/provider-soft/udp_frame.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::tests;

namespace {

void parse__udp_over_ipv4(void**) {
  FrameBytes bytes = udp_frame(1766);
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  assert_int_equal(frame.network, Frame::Network::kIpv4);
  assert_int_equal(frame.transport, Frame::Transport::kUdp);
  assert_false(frame.has_vlan);
  assert_false(frame.is_multicast());
  assert_int_equal(frame.ethernet.dst_mac[5], 0xB);
  assert_int_equal(frame.ethernet.src_mac[5], 0xA);
  assert_int_equal(ntohs(frame.ethernet.ether_type), 0x0800);
  assert_int_equal(ntohl(frame.ipv4.src_ip), 0x420995BB);
  assert_int_equal(ntohl(frame.ipv4.dst_ip), 0xA18E6450);
  assert_int_equal(frame.ipv4.tos, 0x10);
  assert_int_equal(frame.ipv4.ttl, 64);
  assert_int_equal(frame.ipv4.flags, 2);  // don't fragment
  assert_int_equal(ntohs(frame.ports.src_port), kSourcePort);
  assert_int_equal(ntohs(frame.ports.dst_port), 1766);
  // The pad behind the packet does not belong to it.
  assert_int_equal(frame.network_end, 46);
}

void parse__behind_a_vlan_tag(void**) {
  FrameBytes bytes = udp_frame(1766, true);
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  assert_true(frame.has_vlan);
  assert_int_equal(ntohs(frame.ethernet.vlan_tag), 0x6005);
  assert_int_equal(ntohs(frame.ethernet.ether_type), 0x0800);
  assert_int_equal(ntohs(frame.ports.dst_port), 1766);
}

// As mlx5, whose flows compare the outer tag if it is one of 802.1Q.
void parse__a_service_tag_is_no_vlan_tag(void**) {
  FrameBytes bytes = udp_frame(1766, true);
  bytes.bytes[12] = std::byte{0x88};
  bytes.bytes[13] = std::byte{0xA8};
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  assert_false(frame.has_vlan);
  assert_int_equal(frame.ethernet.vlan_tag, 0);
  assert_int_equal(ntohs(frame.ethernet.ether_type), 0x0800);
  assert_int_equal(ntohs(frame.ports.dst_port), 1766);
}

void parse__behind_extension_headers_of_ipv6(void**) {
  FrameBytes bytes = ipv6_frame(1766);
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  assert_int_equal(frame.network, Frame::Network::kIpv6);
  assert_int_equal(frame.transport, Frame::Transport::kUdp);
  assert_int_equal(frame.ipv6.traffic_class, 0x12);
  assert_int_equal(ntohl(frame.ipv6.flow_label), 0x34567);
  assert_int_equal(frame.ipv6.next_hdr, 17);
  assert_int_equal(frame.ipv6.hop_limit, 63);
  assert_int_equal(frame.ipv6.dst_ip[15], 1);
  assert_int_equal(ntohs(frame.ports.dst_port), 1766);
}

void parse__a_fragment_has_no_ports(void**) {
  FrameBytes bytes = udp_frame(1766);
  bytes.bytes[20] = std::byte{0x20};
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  assert_int_equal(frame.network, Frame::Network::kIpv4);
  assert_int_equal(frame.ipv4.flags, 4);
  assert_int_equal(frame.transport, Frame::Transport::kOther);
  assert_int_equal(frame.ports.dst_port, 0);
}

// Tests of rdma-core send such packets, and a NIC's flows match them.
void parse__of_a_packet_that_the_frame_cuts__finds_its_headers(void**) {
  FrameBytes six = ipv6_frame(1766), four = udp_frame(1766);
  six.bytes[19] = std::byte{60};
  four.bytes[17] = std::byte{90};
  for (FrameBytes* bytes : {&six, &four}) {
    Frame frame;
    assert_true(parse_frame(bytes->all(), frame));
    assert_true(frame.is_cut);
    assert_int_equal(frame.network_end, bytes->size);
    assert_int_equal(frame.transport, Frame::Transport::kUdp);
    assert_int_equal(ntohs(frame.ports.dst_port), 1766);
    // Nobody can know its checksum, although UDP has none here.
    complete_checksums(bytes->all());
    assert_false(has_good_checksums(frame));
  }
}

// Each prefix, and each value of each byte: nothing is read beyond the frame, which a sanitizer would show.
void parse__of_any_bytes_stays_within_them(void**) {
  for (FrameBytes whole : {udp_frame(1), udp_frame(1, true), udp_frame(1, false, 6), ipv6_frame(1)}) {
    for (size_t size = 0; size <= whole.size; ++size) {
      auto* copy = new std::byte[size];
      memcpy(copy, whole.bytes, size);
      Frame frame;
      assert_int_equal(parse_frame({copy, size}, frame), size >= kEthernetHeader);
      has_good_checksums(frame);
      complete_checksums({copy, size});
      delete[] copy;
    }
    for (size_t at = 12; at < whole.size; ++at) {
      for (unsigned value = 0; value < 256; ++value) {
        FrameBytes changed = whole;
        changed.bytes[at] = static_cast<std::byte>(value);
        Frame frame;
        assert_true(parse_frame(changed.all(), frame));
        has_good_checksums(frame);
        complete_checksums(changed.all());
      }
    }
  }
}

void checksums__completed_ones_are_good(void**) {
  for (FrameBytes bytes : {udp_frame(7), udp_frame(7, true), udp_frame(7, false, 6)}) {
    Frame frame;
    assert_true(parse_frame(bytes.all(), frame));
    assert_false(has_good_checksums(frame));
    complete_checksums(bytes.all());
    assert_true(has_good_checksums(frame));
    bytes.bytes[frame.transport_at + 1] ^= std::byte{1};
    assert_false(has_good_checksums(frame));
  }
}

// The packet of UDP is an inner one as well as an outer one for this function.
void checksums__an_open_one_is_completed(void**) {
  FrameBytes bytes = udp_frame(7);
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  complete_checksums(bytes.all());
  const FrameBytes whole = bytes;
  // The kernel leaves the sum of the addresses, the protocol and the length there.
  const size_t at = frame.transport_at + 6;
  uint32_t sum = 17 + 12;
  for (size_t i = 26; i < 34; i += 2)
    sum += std::to_integer<uint32_t>(bytes.bytes[i]) << 8 | std::to_integer<uint32_t>(bytes.bytes[i + 1]);
  sum = (sum & 0xFFFF) + (sum >> 16);
  bytes.bytes[at] = static_cast<std::byte>(sum >> 8);
  bytes.bytes[at + 1] = static_cast<std::byte>(sum);
  const FrameBytes open = bytes;
  complete_open_checksum(bytes.all(), frame.transport_at, 6);
  assert_memory_equal(bytes.bytes, whole.bytes, whole.size);
  // A field that is not in the frame, and the CRC of SCTP.
  bytes = open;
  complete_open_checksum(bytes.all(), bytes.size - 7, 6);
  complete_open_checksum(bytes.all(), 0xFFFF, 0xFFFF);
  complete_open_checksum(bytes.all(), frame.transport_at, 8);
  assert_memory_equal(bytes.bytes, open.bytes, open.size);
}

void checksums__a_completed_one_is_not_zero(void**) {
  FrameBytes bytes;
  bytes.add16(0xFFFF).add16(0);
  complete_open_checksum(bytes.all(), 0, 2);
  assert_int_equal(bytes.bytes[2], std::byte{0xFF});
  assert_int_equal(bytes.bytes[3], std::byte{0xFF});
}

// RFC 768: UDP over IPv4 may have none.
void checksums__udp_without_one_is_good(void**) {
  FrameBytes bytes = udp_frame(7);
  complete_checksums(bytes.all());
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  bytes.bytes[frame.transport_at + 6] = bytes.bytes[frame.transport_at + 7] = std::byte{0};
  assert_true(has_good_checksums(frame));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(parse__udp_over_ipv4),
      cmocka_unit_test(parse__behind_a_vlan_tag),
      cmocka_unit_test(parse__a_service_tag_is_no_vlan_tag),
      cmocka_unit_test(parse__behind_extension_headers_of_ipv6),
      cmocka_unit_test(parse__a_fragment_has_no_ports),
      cmocka_unit_test(parse__of_a_packet_that_the_frame_cuts__finds_its_headers),
      cmocka_unit_test(parse__of_any_bytes_stays_within_them),
      cmocka_unit_test(checksums__completed_ones_are_good),
      cmocka_unit_test(checksums__an_open_one_is_completed),
      cmocka_unit_test(checksums__a_completed_one_is_not_zero),
      cmocka_unit_test(checksums__udp_without_one_is_good),
  };
  return cmocka_run_group_tests_name("frame", tests, nullptr, nullptr);
}
