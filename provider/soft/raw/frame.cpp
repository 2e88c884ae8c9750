// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/frame.hpp"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>

#include "roce/packet/big_endian.hpp"

namespace dapple::soft {
namespace {

constexpr uint16_t kServiceTag = 0x88A8;  // IEEE 802.1ad
constexpr size_t kIpv4Header = 20, kIpv6Header = 40;
constexpr size_t kTcpHeader = 20, kUdpHeader = 8;
// More extension headers than that are no packet of a normal host.
constexpr int kMaxExtensions = 8;

uint8_t byte_at(const Frame& frame, size_t at) {
  return std::to_integer<uint8_t>(frame.bytes[at]);
}

// As a NIC: a length that is too large for the frame does not hide the headers.
void end_network(Frame& frame, size_t length) {
  const size_t room = frame.bytes.size() - frame.network_at;
  frame.is_cut = length > room;
  frame.network_end = frame.network_at + std::min(length, room);
}

// The packet is no fragment: it has a transport header if its protocol has one.
void parse_transport(Frame& frame, uint8_t protocol, size_t at) {
  const size_t needed = protocol == IPPROTO_TCP ? kTcpHeader : protocol == IPPROTO_UDP ? kUdpHeader : SIZE_MAX;
  if (needed > frame.network_end || at > frame.network_end - needed) return;
  frame.transport = protocol == IPPROTO_TCP ? Frame::Transport::kTcp : Frame::Transport::kUdp;
  frame.transport_at = at;
  memcpy(&frame.ports.src_port, &frame.bytes[at], sizeof(frame.ports.src_port));
  memcpy(&frame.ports.dst_port, &frame.bytes[at + 2], sizeof(frame.ports.dst_port));
}

void parse_ipv4(Frame& frame) {
  const size_t at = frame.network_at;
  if (frame.bytes.size() - at < kIpv4Header || byte_at(frame, at) >> 4 != 4) return;
  const size_t header = size_t{byte_at(frame, at) & 0x0Fu} * 4;
  const size_t length = roce::load_be16(&frame.bytes[at + 2]);
  if (header < kIpv4Header || length < header || header > frame.bytes.size() - at) return;
  constexpr uint16_t kFragment = 0x3FFF;  // more fragments follow, or others came before
  const uint16_t fragment = roce::load_be16(&frame.bytes[at + 6]);
  frame.network = Frame::Network::kIpv4;
  end_network(frame, length);
  frame.ipv4.tos = byte_at(frame, at + 1);
  // Bit 1: don't fragment; bit 2: more fragments (the kernel's ib_ipv4_flags).
  frame.ipv4.flags = static_cast<uint8_t>((fragment >> 14 & 1) << 1 | (fragment >> 13 & 1) << 2);
  frame.ipv4.ttl = byte_at(frame, at + 8);
  frame.ipv4.proto = byte_at(frame, at + 9);
  memcpy(&frame.ipv4.src_ip, &frame.bytes[at + 12], sizeof(frame.ipv4.src_ip));
  memcpy(&frame.ipv4.dst_ip, &frame.bytes[at + 16], sizeof(frame.ipv4.dst_ip));
  if ((fragment & kFragment) == 0) parse_transport(frame, frame.ipv4.proto, at + header);
}

void parse_ipv6(Frame& frame) {
  const size_t at = frame.network_at;
  if (frame.bytes.size() - at < kIpv6Header || byte_at(frame, at) >> 4 != 6) return;
  const size_t length = kIpv6Header + roce::load_be16(&frame.bytes[at + 4]);
  const uint32_t first = roce::load_be32(&frame.bytes[at]);
  frame.network = Frame::Network::kIpv6;
  end_network(frame, length);
  frame.ipv6.traffic_class = static_cast<uint8_t>(first >> 20);
  frame.ipv6.flow_label = htonl(first & 0xFFFFF);
  frame.ipv6.hop_limit = byte_at(frame, at + 7);
  memcpy(frame.ipv6.src_ip, &frame.bytes[at + 8], sizeof(frame.ipv6.src_ip));
  memcpy(frame.ipv6.dst_ip, &frame.bytes[at + 24], sizeof(frame.ipv6.dst_ip));
  uint8_t next = byte_at(frame, at + 6);
  size_t there = at + kIpv6Header;
  for (int i = 0; i < kMaxExtensions; i++) {
    const bool is_extension = next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS;
    if (!is_extension || frame.network_end - there < 8) break;
    const size_t size = (size_t{byte_at(frame, there + 1)} + 1) * 8;
    if (size > frame.network_end - there) break;
    next = byte_at(frame, there);
    there += size;
  }
  frame.ipv6.next_hdr = next;
  parse_transport(frame, next, there);
}

}  // namespace

bool parse_frame(std::span<const std::byte> bytes, Frame& frame) {
  if (bytes.size() < kEthernetHeader) return false;
  frame = {};
  frame.bytes = bytes;
  memcpy(frame.ethernet.dst_mac, &bytes[0], sizeof(frame.ethernet.dst_mac));
  memcpy(frame.ethernet.src_mac, &bytes[6], sizeof(frame.ethernet.src_mac));
  size_t at = kEthernetHeader;
  uint16_t type = roce::load_be16(&bytes[at - 2]);
  for (int tags = 0; tags < 2 && (type == ETHERTYPE_VLAN || type == kServiceTag); tags++) {
    if (bytes.size() - at < kVlanTag) break;
    if (tags == 0 && type == ETHERTYPE_VLAN) {
      memcpy(&frame.ethernet.vlan_tag, &bytes[at], sizeof(frame.ethernet.vlan_tag));
      frame.has_vlan = true;
    }
    type = roce::load_be16(&bytes[at + 2]);
    at += kVlanTag;
  }
  frame.ethernet.ether_type = htons(type);
  frame.network_at = at;
  if (type == ETHERTYPE_IP) parse_ipv4(frame);
  if (type == ETHERTYPE_IPV6) parse_ipv6(frame);
  return true;
}

}  // namespace dapple::soft
