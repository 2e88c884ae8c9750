// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The codec of connection management: every message compared with bytes written by hand, encoded and decoded again, and
// datagrams that are no messages.
#include "roce/cm/mad.hpp"

#include <algorithm>
#include <vector>

#include "roce/cm/ip_service.hpp"
#include "tests/roce-support/cm_samples.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

using Octets = std::vector<uint8_t>;

void assert_octets(const Mad& mad, size_t at, const Octets& expected) {
  assert_memory_equal(mad.data() + at, expected.data(), expected.size());
}

// `at` counts from the end of the header, as IBTA's tables do.
void assert_body(const Mad& mad, size_t at, const Octets& expected) {
  assert_octets(mad, kMadHeaderSize + at, expected);
}

void assert_counts_up(const Mad& mad, size_t at, uint8_t first) {
  for (size_t i = kMadHeaderSize + at; i < kMadSize; ++i) assert_int_equal(mad[i], std::byte{first++});
}

template <typename Message>
void assert_there_and_back(const Message& message, Attribute attribute) {
  const Mad mad = make_mad(kSampleTransaction, message);
  MadView view;
  assert_int_equal(open_mad(mad, view), MadError::kNone);
  assert_int_equal(view.attribute, attribute);
  assert_int_equal(view.transaction, kSampleTransaction);
  Message again;
  read(view, again);
  assert_true(again == message);
  assert_true(make_mad(kSampleTransaction, again) == mad);
}

void make_mad__every_message__read_again(void**) {
  assert_there_and_back(sample_req(), Attribute::kReq);
  assert_there_and_back(sample_mra(), Attribute::kMra);
  assert_there_and_back(sample_rej(), Attribute::kRej);
  assert_there_and_back(sample_rep(), Attribute::kRep);
  assert_there_and_back(sample_rtu(), Attribute::kRtu);
  assert_there_and_back(sample_dreq(), Attribute::kDreq);
  assert_there_and_back(sample_drep(), Attribute::kDrep);
  assert_there_and_back(sample_sidr_req(), Attribute::kSidrReq);
  assert_there_and_back(sample_sidr_rep(), Attribute::kSidrRep);
}

void make_mad__header__by_hand(void**) {
  const Mad mad = make_mad(kSampleTransaction, sample_rtu());
  assert_octets(mad, 0, {1, 7, 2, 3, 0, 0, 0, 0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8});
  assert_octets(mad, 16, {0, 0x14, 0, 0, 0, 0, 0, 0});
}

void make_mad__req__by_hand(void**) {
  const Mad mad = make_mad(1, sample_req());
  assert_octets(mad, 16, {0, 0x10, 0, 0, 0x8A, 0x8B, 0x8C, 0x8D});
  assert_body(mad, 0, {0xC1, 0xC2, 0xC3, 0xC4, 0, 0x9A, 0x9B, 0x9C, 0, 0, 0, 0, 0x01, 0x06, 0x1C, 0x06});
  assert_body(mad, 16, {0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44});
  assert_body(mad, 32, {0x0A, 0x0B, 0x0C, 0xF1, 0, 0, 0, 0xF2, 0, 0, 0});
  assert_body(mad, 43, {21 << 3 | 1 << 1 | 1, 0xD1, 0xD2, 0xD3, 19 << 3 | 5, 0x81, 0x23, 4 << 4 | 8 | 6});
  assert_body(mad, 51, {11 << 4 | 8 | 2, 0xFF, 0xFE, 0xFF, 0xFD});
  assert_body(mad, 56, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1});
  assert_body(mad, 72, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 2});
  assert_body(mad, 88, {0xAB, 0xCD, 0xE0, 0x25, 0x6E, 63, 9 << 4 | 8, 18 << 3});
  // No alternate path.
  assert_body(mad, 96, Octets(44));
  assert_body(mad, 140, {0, 0x40, 0xD4, 0x31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1});
  assert_body(mad, 160, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2});
  assert_counts_up(mad, 176, 0x10 + 36);
}

void make_mad__answers__by_hand(void**) {
  const Mad mra = make_mad(1, sample_mra());
  assert_octets(mra, 16, {0, 0x11});
  assert_body(mra, 0, {0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 2 << 6, 24 << 3});
  assert_counts_up(mra, 10, 0x20);

  const Mad rej = make_mad(1, sample_rej());
  assert_octets(rej, 16, {0, 0x12});
  assert_body(rej, 0, {0x31, 0x32, 0x33, 0x35, 0x41, 0x42, 0x43, 0x45, 1 << 6, 72 << 1, 0, 10, 0x30, 0x31});
  assert_counts_up(rej, 84, 0x90);

  const Mad rep = make_mad(1, sample_rep());
  assert_octets(rep, 16, {0, 0x13, 0, 0, 0x8E, 0x8F, 0x90, 0x91});
  assert_body(rep, 0, {0x31, 0x32, 0x33, 0x36, 0x41, 0x42, 0x43, 0x46, 0x55, 0x66, 0x77, 0x88});
  assert_body(rep, 12, {0x1A, 0x1B, 0x1C, 0x9D, 0x2A, 0x2B, 0x2C, 0x9E, 0x3A, 0x3B, 0x3C, 0x9F});
  assert_body(rep, 24, {0xE1, 0xE2, 15 << 3 | 2 << 1 | 1, 3 << 5 | 1 << 4});
  assert_body(rep, 28, {0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78});
  assert_counts_up(rep, 36, 0x40);

  const Mad rtu = make_mad(1, sample_rtu());
  assert_body(rtu, 0, {0x31, 0x32, 0x33, 0x37, 0x41, 0x42, 0x43, 0x47});
  assert_counts_up(rtu, 8, 0x50);
}

void make_mad__disconnection_and_sidr__by_hand(void**) {
  const Mad dreq = make_mad(1, sample_dreq());
  assert_octets(dreq, 16, {0, 0x15});
  assert_body(dreq, 0, {0x31, 0x32, 0x33, 0x38, 0x41, 0x42, 0x43, 0x48, 0x4A, 0x4B, 0x4C, 0});
  assert_counts_up(dreq, 12, 0x60);

  const Mad drep = make_mad(1, sample_drep());
  assert_octets(drep, 16, {0, 0x16});
  assert_counts_up(drep, 8, 0x70);

  const Mad request = make_mad(1, sample_sidr_req());
  assert_octets(request, 16, {0, 0x17});
  assert_body(request, 0, {0x31, 0x32, 0x33, 0x3A, 0x87, 0x65, 0, 0, 0, 0, 0, 0, 0x01, 0x11, 0x1C, 0x07});
  assert_body(request, 16, {0, 0x60, 0xD4, 0x31, 0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  assert_counts_up(request, 52, 0x10 + 36);

  const Mad reply = make_mad(1, sample_sidr_rep());
  assert_octets(reply, 16, {0, 0x18});
  assert_body(reply, 0, {0x41, 0x42, 0x43, 0x4A, 3, 71, 0, 0, 0x5A, 0x5B, 0x5C, 0});
  assert_body(reply, 12, {0, 0, 0, 0, 0x01, 0x11, 0x1C, 0x08, 0x01, 0x23, 0x45, 0x67, 0x80, 0x81});
  assert_counts_up(reply, 96, 0xB0);
}

void make_mad__values_wider_than_their_fields__cut(void**) {
  Req req;
  req.qpn = 0xFF000001;
  req.psn = 0xFF000002;
  req.mtu = 0xF3;
  req.retry_count = 0xFF;
  req.flow_label = 0xFFF00001;
  req.ece.vendor = 0xFF000003;
  const Mad mad = make_mad(1, req);
  MadView view;
  assert_int_equal(open_mad(mad, view), MadError::kNone);
  Req again;
  read(view, again);
  assert_int_equal(again.qpn, 1);
  assert_int_equal(again.psn, 2);
  assert_int_equal(again.mtu, 3);
  assert_int_equal(again.retry_count, 7);
  assert_int_equal(again.flow_label, 1);
  assert_int_equal(again.ece.vendor, 3);
  // The cut bits do not appear in a neighbour.
  assert_int_equal(again.local_response_timeout, 20);
  assert_int_equal(again.responder_resources, 0);
}

void open_mad__other_sizes__refused(void**) {
  const Mad mad = make_mad(1, sample_req());
  for (size_t size = 0; size < 2 * kMadSize; ++size) {
    // A heap block of exactly that size, so that AddressSanitizer detects an access to the first byte after it.
    std::vector<std::byte> bytes(size);
    std::copy_n(mad.begin(), std::min(size, kMadSize), bytes.begin());
    MadView view;
    assert_int_equal(open_mad(bytes, view), size == kMadSize ? MadError::kNone : MadError::kSize);
  }
}

void open_mad__damaged_header__first_reason_in_order(void**) {
  MadView view;
  Mad mad = make_mad(1, sample_req());
  mad[17] = std::byte{0x1B};
  assert_int_equal(open_mad(mad, view), MadError::kAttribute);
  mad[17] = std::byte{0x0F};
  assert_int_equal(open_mad(mad, view), MadError::kAttribute);
  mad[16] = std::byte{0xFF};
  mad[17] = std::byte{0x10};
  assert_int_equal(open_mad(mad, view), MadError::kAttribute);
  for (const int method : {0, 1, 2, 4, 0x81, 0x83}) {
    mad[3] = static_cast<std::byte>(method);
    assert_int_equal(open_mad(mad, view), MadError::kMethod);
  }
  mad[2] = std::byte{1};
  assert_int_equal(open_mad(mad, view), MadError::kClass);
  mad[2] = std::byte{2};
  mad[1] = std::byte{3};
  assert_int_equal(open_mad(mad, view), MadError::kClass);
  mad[0] = std::byte{0x80};
  assert_int_equal(open_mad(mad, view), MadError::kVersion);
}

void ip_header__both_families__there_and_back(void**) {
  for (const bool ipv6 : {false, true}) {
    std::array<std::byte, kIpHeaderSize> bytes;
    bytes.fill(std::byte{0xEE});
    write_ip_header(sample_ip_header(ipv6), bytes);
    IpHeader header;
    assert_true(read_ip_header(bytes, header));
    assert_true(header == sample_ip_header(ipv6));
    assert_int_equal(is_ipv4(header.source), !ipv6);
  }
}

void ip_header__damaged__refused(void**) {
  std::array<std::byte, kIpHeaderSize> bytes{};
  write_ip_header(sample_ip_header(false), bytes);
  IpHeader header;
  for (size_t size = 0; size < kIpHeaderSize; ++size) {
    const std::vector<std::byte> exact(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    assert_false(read_ip_header(exact, header));
  }
  for (unsigned version = 0; version < 16; ++version) {
    bytes[1] = static_cast<std::byte>(version << 4);
    assert_int_equal(read_ip_header(bytes, header), version == 4 || version == 6);
  }
  bytes[1] = std::byte{0x40};
  bytes[0] = std::byte{1};
  assert_false(read_ip_header(bytes, header));
}

void ip_header__ipv4__foreign_bytes_before_the_address_ignored(void**) {
  std::array<std::byte, kIpHeaderSize> bytes{};
  write_ip_header(sample_ip_header(false), bytes);
  bytes[4] = bytes[20] = std::byte{0xAB};
  IpHeader header;
  assert_true(read_ip_header(bytes, header));
  assert_true(header == sample_ip_header(false));
}

void service_id__port_spaces(void**) {
  assert_int_equal(service_id_of(PortSpace::kTcp, 7174), 0x01061C06);
  assert_int_equal(service_id_of(PortSpace::kUdp, 0), 0x01110000);
  assert_int_equal(service_id_of(PortSpace::kIb, 0xFFFF), 0x013FFFFF);
  assert_true(is_ip_service(0x01061C06) && is_ip_service(0x01FFFFFF));
  assert_false(is_ip_service(0x02061C06) || is_ip_service(0x1000000001061C06) || is_ip_service(0x1061C06 >> 8));
  assert_int_equal(port_of(0x01061C06), 7174);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(make_mad__every_message__read_again),
      cmocka_unit_test(make_mad__header__by_hand),
      cmocka_unit_test(make_mad__req__by_hand),
      cmocka_unit_test(make_mad__answers__by_hand),
      cmocka_unit_test(make_mad__disconnection_and_sidr__by_hand),
      cmocka_unit_test(make_mad__values_wider_than_their_fields__cut),
      cmocka_unit_test(open_mad__other_sizes__refused),
      cmocka_unit_test(open_mad__damaged_header__first_reason_in_order),
      cmocka_unit_test(ip_header__both_families__there_and_back),
      cmocka_unit_test(ip_header__damaged__refused),
      cmocka_unit_test(ip_header__ipv4__foreign_bytes_before_the_address_ignored),
      cmocka_unit_test(service_id__port_spaces),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
