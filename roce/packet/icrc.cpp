// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/packet/icrc.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "roce/packet/big_endian.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::roce {

namespace {

constexpr size_t kIpv4Size = 20;
constexpr size_t kIpv6Size = 40;
constexpr size_t kUdpSize = 8;
constexpr std::byte kUdpProtocol{17};
constexpr std::byte kMasked{0xFF};

// Annex 17, A17.3.3: the CRC begins with eight bytes of ones, where InfiniBand has its local route header. This is the
// CRC after them, without the final inversion.
constexpr uint32_t kSeed = 0xDEBB20E3;

// CRC registers are polynomials over GF(2) modulo the CRC's: bit 31 is the coefficient of x^0, bit 0 that of x^31.
constexpr uint32_t kPolynomial = 0xEDB88320;  // without x^32
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t a) {
  return a & 1 ? a >> 1 ^ kPolynomial : a >> 1;
}

constexpr uint32_t divided_by_x(uint32_t a) {
  return a & kOne ? (a ^ kPolynomial) << 1 | 1 : a << 1;
}

constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (; b != 0; b <<= 1) {
    sum ^= a & (0 - (b >> 31));
    a = a >> 1 ^ (kPolynomial & (0 - (a & 1)));
  }
  return sum;
}

static_assert(divided_by_x(times_x(0x12345678)) == 0x12345678);
static_assert(product(times_x(kOne), 0x12345679) == times_x(0x12345679));

// powers<count>(step): 1, step, step^2, ...
template <size_t count>
constexpr std::array<uint32_t, count> powers(uint32_t step) {
  std::array<uint32_t, count> all{};
  uint32_t power = kOne;
  for (uint32_t& each : all) {
    each = power;
    power = product(step, power);
  }
  return all;
}

constexpr uint32_t inverse_of_words(size_t words) {
  uint32_t power = kOne;
  for (size_t bit = 0; bit < words * 32; ++bit) power = divided_by_x(power);
  return power;
}

// x^(-32n): the n-th factor undoes the effect of n words behind a word. One look-up suffices for packets of up to 4 KiB
// and their headers.
constexpr size_t kNearWords = 1056;
constexpr auto kNear = powers<kNearWords>(inverse_of_words(1));
constexpr auto kFar = powers<65536 / 4 / kNearWords + 1>(product(kNear[kNearWords - 1], kNear[1]));

// Whole words from the end of the identification's word to the BTH: the IPv4 header's last three, and UDP's two. A CRC
// multiplies by one more.
constexpr size_t kWordsBehindIdentification = 3 + kUdpSize / 4 + 1;

// Bytes that are copied from the front of a packet for its ICRC. They contain the BTH.
constexpr size_t kFront = 64;
static_assert(kFront >= kBthSize);

uint32_t stored(uint32_t crc) {
  if constexpr (std::endian::native == std::endian::little) return ~crc;
  const uint32_t value = ~crc;
  return value >> 24 | (value >> 8 & 0xFF00) | (value << 8 & 0xFF0000) | value << 24;
}

size_t write_ip(const IcrcAddresses& addresses, size_t udp_size, std::byte* to) {
  if (addresses.ipv6) {
    store_be32(to, 0x6FFFFFFF);  // traffic class and flow label masked
    store_be16(to + 4, static_cast<uint16_t>(udp_size));
    to[6] = kUdpProtocol;
    to[7] = kMasked;  // hop limit
    std::memcpy(to + 8, addresses.source, 16);
    std::memcpy(to + 24, addresses.destination, 16);
    return kIpv6Size;
  }
  to[0] = std::byte{0x45};
  to[1] = kMasked;  // type of service
  store_be16(to + 2, static_cast<uint16_t>(kIpv4Size + udp_size));
  store_be16(to + 4, addresses.identification);
  store_be16(to + 6, 0x4000);  // don't fragment
  to[8] = kMasked;             // time to live
  to[9] = kUdpProtocol;
  store_be16(to + 10, 0xFFFF);  // checksum masked
  std::memcpy(to + 12, addresses.source, 4);
  std::memcpy(to + 16, addresses.destination, 4);
  return kIpv4Size;
}

}  // namespace

uint32_t icrc_prefix(const IcrcAddresses& addresses, size_t transport_size, Crc32 crc) {
  const size_t udp_size = kUdpSize + transport_size + kIcrcSize;
  std::byte headers[kIpv6Size + kUdpSize];
  const size_t ip_size = write_ip(addresses, udp_size, headers);
  std::byte* udp = headers + ip_size;
  store_be16(udp, addresses.source_port);
  store_be16(udp + 2, addresses.destination_port);
  store_be16(udp + 4, static_cast<uint16_t>(udp_size));
  store_be16(udp + 6, 0xFFFF);  // checksum masked
  return crc(kSeed, headers, ip_size + kUdpSize);
}

uint32_t icrc_of(uint32_t prefix, std::span<const std::byte> transport, Crc32 crc) {
  // FECN, BECN and the reserved bits beside them may change on the way. A short packet is copied whole: that takes less
  // time than a second call of `crc`.
  std::byte front[kFront] = {};
  const size_t size = std::min(transport.size(), kFront);
  std::copy_n(transport.data(), size, front);
  front[4] = kMasked;
  const uint32_t value = crc(prefix, front, size);
  const std::span<const std::byte> rest = transport.subspan(size);
  return stored(rest.empty() ? value : crc(value, rest.data(), rest.size()));
}

int32_t icrc_identification(uint32_t received, uint32_t computed_for_zero, size_t transport_size) {
  // Without the inversions, which cancel, the difference of the two is the identification's word as a polynomial, times
  // x^32 for each word behind it and once more.
  uint32_t difference = stored(received) ^ stored(computed_for_zero);
  if (difference == 0) return 0;
  const size_t words = kWordsBehindIdentification + (transport_size + 3) / 4;
  if (words / kNearWords >= kFar.size()) return -1;
  for (size_t bit = transport_size % 4 * 8; bit % 32 != 0; ++bit) difference = times_x(difference);
  difference = product(kNear[words % kNearWords], difference);
  if (words >= kNearWords) difference = product(kFar[words / kNearWords], difference);
  // The word in the order of its bytes: identification, then flags and offset, which are known.
  if (difference >> 16 != 0) return -1;
  return static_cast<int32_t>((difference & 0xFF) << 8 | difference >> 8);
}

}  // namespace dapple::roce
