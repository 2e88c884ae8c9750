// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/frame.hpp"

#include <cstring>

#include "roce/packet/big_endian.hpp"
#include "tests/roce-support/crc32.hpp"

namespace dapple::roce::test {

namespace {

constexpr size_t kUdpSize = 8;

void append(Bytes& to, std::span<const std::byte> what) {
  to.insert(to.end(), what.begin(), what.end());
}

void append_ipv4(Bytes& frame, const IcrcAddresses& addresses, size_t udp_size) {
  std::byte ip[20] = {};
  ip[0] = std::byte{0x45};
  store_be16(ip + 2, static_cast<uint16_t>(sizeof ip + udp_size));
  store_be16(ip + 4, addresses.identification);
  store_be16(ip + 6, 0x4000);
  ip[8] = std::byte{64};
  ip[9] = std::byte{17};
  std::memcpy(ip + 12, addresses.source, 4);
  std::memcpy(ip + 16, addresses.destination, 4);
  uint32_t sum = 0;
  for (size_t i = 0; i < sizeof ip; i += 2) sum += load_be16(ip + i);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  store_be16(ip + 10, static_cast<uint16_t>(~sum));
  append(frame, ip);
}

void append_ipv6(Bytes& frame, const IcrcAddresses& addresses, size_t udp_size) {
  std::byte ip[40] = {};
  store_be32(ip, 0x60000000);
  store_be16(ip + 4, static_cast<uint16_t>(udp_size));
  ip[6] = std::byte{17};
  ip[7] = std::byte{64};
  std::memcpy(ip + 8, addresses.source, 16);
  std::memcpy(ip + 24, addresses.destination, 16);
  append(frame, ip);
}

}  // namespace

Bytes transport_of(Headers headers, std::span<const std::byte> payload) {
  headers.pad = pad_of(payload.size());
  Bytes bytes(kMaxHeaderSize);
  bytes.resize(write_headers(headers, bytes));
  append(bytes, payload);
  bytes.resize(bytes.size() + headers.pad);
  return bytes;
}

Bytes frame_of(const IcrcAddresses& addresses, std::span<const std::byte> transport) {
  const size_t udp_size = kUdpSize + transport.size() + kIcrcSize;
  Bytes frame(14);
  frame[0] = frame[6] = std::byte{2};
  frame[5] = std::byte{2};
  frame[11] = std::byte{1};
  store_be16(frame.data() + 12, addresses.ipv6 ? 0x86DD : 0x0800);
  if (addresses.ipv6)
    append_ipv6(frame, addresses, udp_size);
  else
    append_ipv4(frame, addresses, udp_size);
  std::byte udp[kUdpSize] = {};
  store_be16(udp, addresses.source_port);
  store_be16(udp + 2, addresses.destination_port);
  store_be16(udp + 4, static_cast<uint16_t>(udp_size));
  append(frame, udp);
  append(frame, transport);
  const uint32_t icrc = icrc_of(icrc_prefix(addresses, transport.size(), crc32), transport, crc32);
  append(frame, std::as_bytes(std::span(&icrc, 1)));
  return frame;
}

IcrcAddresses sample_addresses(bool ipv6) {
  IcrcAddresses addresses;
  addresses.ipv6 = ipv6;
  addresses.source_port = 0xC001;
  constexpr uint8_t kIpv4[] = {192, 0, 2, 0};
  constexpr uint8_t kIpv6[16] = {0x20, 0x01, 0x0D, 0xB8};
  const std::span<const uint8_t> network = ipv6 ? std::span<const uint8_t>(kIpv6) : std::span<const uint8_t>(kIpv4);
  std::memcpy(addresses.source, network.data(), network.size());
  std::memcpy(addresses.destination, network.data(), network.size());
  addresses.source[network.size() - 1] = 1;
  addresses.destination[network.size() - 1] = 2;
  return addresses;
}

}  // namespace dapple::roce::test
