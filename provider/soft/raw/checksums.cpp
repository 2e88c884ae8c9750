// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/checksums.hpp"

#include <netinet/in.h>

#include "roce/packet/big_endian.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kIpv4ChecksumAt = 10, kTcpChecksumAt = 16, kUdpChecksumAt = 6, kSctpChecksumAt = 8;

// The sum of 16-bit words. An odd byte at the end has a zero behind it.
uint64_t add(uint64_t sum, std::span<const std::byte> bytes) {
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) sum += roce::load_be32(&bytes[at]);
  for (; at + 2 <= bytes.size(); at += 2) sum += roce::load_be16(&bytes[at]);
  if (at < bytes.size()) sum += std::to_integer<uint64_t>(bytes[at]) << 8;
  return sum;
}

uint16_t checksum_of(uint64_t sum) {
  while (sum > UINT16_MAX) sum = (sum & UINT16_MAX) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::span<const std::byte> header_of(const Frame& frame) {
  const size_t size = std::to_integer<size_t>(frame.bytes[frame.network_at] & std::byte{0x0F}) * 4;
  return frame.bytes.subspan(frame.network_at, size);
}

size_t checksum_at(const Frame& frame) {
  return frame.transport_at + (frame.transport == Frame::Transport::kTcp ? kTcpChecksumAt : kUdpChecksumAt);
}

// Over the pseudo-header and the rest of the packet, with the checksum that is in it.
uint64_t sum_of_transport(const Frame& frame) {
  const size_t addresses_at = frame.network_at + (frame.network == Frame::Network::kIpv4 ? 12 : 8);
  const size_t addresses = frame.network == Frame::Network::kIpv4 ? 8 : 32;
  const size_t length = frame.network_end - frame.transport_at;
  const uint64_t sum = length + (frame.transport == Frame::Transport::kTcp ? IPPROTO_TCP : IPPROTO_UDP);
  return add(add(sum, frame.bytes.subspan(addresses_at, addresses)), frame.bytes.subspan(frame.transport_at, length));
}

void complete_transport(const Frame& frame, std::span<std::byte> bytes) {
  if (frame.transport == Frame::Transport::kOther || frame.is_cut) return;
  std::byte* at = &bytes[checksum_at(frame)];
  roce::store_be16(at, 0);
  const uint16_t checksum = checksum_of(sum_of_transport(frame));
  // RFC 768: zero means that there is none.
  const bool is_udp = frame.transport == Frame::Transport::kUdp;
  roce::store_be16(at, checksum == 0 && is_udp ? UINT16_MAX : checksum);
}

}  // namespace

bool has_good_checksums(const Frame& frame) {
  const bool is_known = frame.network == Frame::Network::kIpv4 && frame.transport != Frame::Transport::kOther;
  if (!is_known || frame.is_cut) return false;
  if (checksum_of(add(0, header_of(frame))) != 0) return false;
  const bool is_udp = frame.transport == Frame::Transport::kUdp;
  if (is_udp && roce::load_be16(&frame.bytes[checksum_at(frame)]) == 0) return true;
  return checksum_of(sum_of_transport(frame)) == 0;
}

void complete_checksums(std::span<std::byte> bytes) {
  Frame frame;
  if (!parse_frame(bytes, frame)) return;
  if (frame.network == Frame::Network::kIpv4) {
    std::byte* at = &bytes[frame.network_at + kIpv4ChecksumAt];
    roce::store_be16(at, 0);
    roce::store_be16(at, checksum_of(add(0, header_of(frame))));
  }
  complete_transport(frame, bytes);
}

void complete_open_checksum(std::span<std::byte> bytes, size_t start, size_t offset) {
  if (offset == kSctpChecksumAt || start + offset + sizeof(uint16_t) > bytes.size()) return;
  const uint16_t checksum = checksum_of(add(0, bytes.subspan(start)));
  // Zero and its complement are the same sum, and the former means for UDP that there is none.
  roce::store_be16(&bytes[start + offset], checksum == 0 ? UINT16_MAX : checksum);
}

}  // namespace dapple::soft
