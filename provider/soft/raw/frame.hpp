// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The headers of an Ethernet frame that flows and hashes look at.
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include <cstddef>
#include <span>

namespace dapple::soft {

inline constexpr size_t kEthernetHeader = 14;
inline constexpr size_t kVlanTag = 4;
// IEEE 802.3, without the FCS.
inline constexpr size_t kShortestFrame = 60;
// That of the loopback interface.
inline constexpr size_t kLongestFrame = 65536 + kEthernetHeader + kVlanTag;

// Without a frame's bytes. The filters have the byte order of the frame, as those of a flow. Fields of headers that the
// frame lacks are 0.
struct Frame {
  enum class Network : uint8_t { kOther, kIpv4, kIpv6 };
  enum class Transport : uint8_t { kOther, kTcp, kUdp };

  std::span<const std::byte> bytes;
  Network network = Network::kOther;
  Transport transport = Transport::kOther;  // a fragment has none
  // The outer tag is one of 802.1Q. A service tag (802.1ad) is none.
  bool has_vlan = false;
  bool is_cut = false;      // the frame ends before the IP packet
  size_t network_at = 0;    // where the IP header begins
  size_t network_end = 0;   // where the IP packet ends; pad may follow
  size_t transport_at = 0;  // where the header of TCP or UDP begins

  ibv_flow_eth_filter ethernet = {};  // ether_type: the one behind VLAN tags; vlan_tag: that of has_vlan
  ibv_flow_ipv4_ext_filter ipv4 = {};
  ibv_flow_ipv6_filter ipv6 = {};  // next_hdr: the one behind extension headers
  ibv_flow_tcp_udp_filter ports = {};

  bool is_multicast() const { return (ethernet.dst_mac[0] & 1) != 0; }
};

// Every byte may be hostile. False if there is no Ethernet header. `frame` points to `bytes` afterwards.
bool parse_frame(std::span<const std::byte> bytes, Frame& frame);

}  // namespace dapple::soft
