// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/packet/ip_headers.hpp"

#include <string.h>

namespace dapple::soft {
namespace {

void put16(std::byte* to, size_t value) {
  to[0] = static_cast<std::byte>(value >> 8);
  to[1] = static_cast<std::byte>(value);
}

// RFC 1071. Adds up words of 16 bits; an odd byte at the end is the upper half of one.
uint64_t add_up(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) {
    sum += static_cast<uint64_t>(bytes[i]) << 8 | static_cast<uint64_t>(bytes[i + 1]);
  }
  if (i < bytes.size()) sum += static_cast<uint64_t>(bytes[i]) << 8;
  return sum;
}

uint16_t checksum(uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

}  // namespace

size_t write_ip_header(std::byte* to, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
                       size_t udp_size) {
  if (addresses.ipv6) {
    memset(to, 0, kIpv6HeaderSize);
    to[0] = static_cast<std::byte>(0x60 | traffic_class >> 4);
    to[1] = static_cast<std::byte>(traffic_class << 4);
    put16(to + 4, udp_size);
    to[6] = std::byte{17};
    to[7] = static_cast<std::byte>(hop_limit);
    memcpy(to + 8, addresses.source, 16);
    memcpy(to + 24, addresses.destination, 16);
    return kIpv6HeaderSize;
  }
  memset(to, 0, kIpv4HeaderSize);
  to[0] = std::byte{0x45};
  to[1] = static_cast<std::byte>(traffic_class);
  put16(to + 2, kIpv4HeaderSize + udp_size);
  put16(to + 4, addresses.identification);
  to[6] = std::byte{0x40};  // don't fragment
  to[8] = static_cast<std::byte>(hop_limit);
  to[9] = std::byte{17};
  memcpy(to + 12, addresses.source, 4);
  memcpy(to + 16, addresses.destination, 4);
  put16(to + 10, checksum(add_up({to, kIpv4HeaderSize})));
  return kIpv4HeaderSize;
}

void write_udp_header(std::byte* to, const roce::IcrcAddresses& addresses, std::span<const std::byte> payload) {
  const size_t size = kUdpHeaderSize + payload.size();
  put16(to, addresses.source_port);
  put16(to + 2, addresses.destination_port);
  put16(to + 4, size);
  put16(to + 6, 0);
  const size_t address_size = addresses.ipv6 ? 16 : 4;
  const auto bytes_of = [&](const uint8_t* address) {
    return std::span(reinterpret_cast<const std::byte*>(address), address_size);
  };
  const uint64_t sum = add_up(bytes_of(addresses.source)) + add_up(bytes_of(addresses.destination)) + 17 + size +
                       add_up({to, kUdpHeaderSize}) + add_up(payload);
  const uint16_t value = checksum(sum);
  put16(to + 6, value != 0 ? value : 0xFFFF);
}

void write_grh(std::byte* to, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
               size_t udp_size) {
  constexpr size_t kBefore = kIpv6HeaderSize - kIpv4HeaderSize;
  if (!addresses.ipv6) memset(to, 0, kBefore);
  write_ip_header(to + (addresses.ipv6 ? 0 : kBefore), addresses, traffic_class, hop_limit, udp_size);
}

}  // namespace dapple::soft
