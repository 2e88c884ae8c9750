// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/cm/ip_service.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "roce/packet/big_endian.hpp"

namespace dapple::roce::cm {

namespace {

constexpr size_t kSourceAt = 4;
constexpr size_t kDestinationAt = 20;
constexpr Gid kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr size_t kIpv4At = 12;

// IBTA A11.4: an IPv4 address stands in the last four bytes of its place, behind zeros.
Gid read_address(const std::byte* from, bool ipv6) {
  Gid address = kMapped;
  if (ipv6)
    std::memcpy(address.data(), from, address.size());
  else
    std::memcpy(address.data() + kIpv4At, from + kIpv4At, 4);
  return address;
}

void write_address(const Gid& address, bool ipv6, std::byte* to) {
  std::memcpy(to, address.data(), address.size());
  if (!ipv6) std::memset(to, 0, kIpv4At);
}

}  // namespace

bool is_ipv4(const Gid& address) {
  return std::equal(kMapped.begin(), kMapped.begin() + kIpv4At, address.begin());
}

bool read_ip_header(std::span<const std::byte> private_data, IpHeader& header) {
  if (private_data.size() < kIpHeaderSize) return false;
  const unsigned version = static_cast<unsigned>(private_data[1]) >> 4;
  if (private_data[0] != std::byte{0} || (version != 4 && version != 6)) return false;
  header.ipv6 = version == 6;
  header.source_port = load_be16(private_data.data() + 2);
  header.source = read_address(private_data.data() + kSourceAt, header.ipv6);
  header.destination = read_address(private_data.data() + kDestinationAt, header.ipv6);
  return true;
}

void write_ip_header(const IpHeader& header, std::span<std::byte> private_data) {
  assert(private_data.size() >= kIpHeaderSize);
  private_data[0] = std::byte{0};
  private_data[1] = static_cast<std::byte>(header.ipv6 ? 0x60 : 0x40);
  store_be16(private_data.data() + 2, header.source_port);
  write_address(header.source, header.ipv6, private_data.data() + kSourceAt);
  write_address(header.destination, header.ipv6, private_data.data() + kDestinationAt);
}

}  // namespace dapple::roce::cm
