// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/flow_attr.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <stdint.h>
#include <string.h>

#include "provider/soft/refusals/refusal.hpp"

namespace dapple::soft {
namespace {

constexpr int kMaxSpecs = 10;  // the kernel's IB_FLOW_SPEC_SUPPORT_LAYERS
constexpr uint16_t kMaxPriority = 15;
constexpr uint32_t kKnownFlags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;

// The numbers are the program's, and may be no constants of their enumerations.
struct SpecHeader {
  uint32_t type;
  uint16_t size;
};

// Programs pack the specifications, so they are copied.
template <typename Spec>
bool copy(const std::byte* from, uint16_t size, Spec& to) {
  if (size < sizeof(Spec)) return false;
  memcpy(&to, from, sizeof(to));
  return true;
}

int refuse_size(unsigned type, unsigned size) {
  return refuse(EINVAL,
                "the specification of type 0x%x has the size %u, which is less than that of its structure.\n"
                "Set size to the size of the structure of this type.",
                type, size);
}

int refuse_second(const char* layer) {
  return refuse(EINVAL, "the flow has two specifications for %s, and a frame has one.\nMake two flows.", layer);
}

int refuse_spec(unsigned type) {
  switch (type & ~unsigned{IBV_FLOW_SPEC_INNER}) {
    case IBV_FLOW_SPEC_ESP:
    case IBV_FLOW_SPEC_VXLAN_TUNNEL:
    case IBV_FLOW_SPEC_GRE:
    case IBV_FLOW_SPEC_MPLS:
    case IBV_FLOW_SPEC_ETH:
    case IBV_FLOW_SPEC_IPV4:
    case IBV_FLOW_SPEC_IPV4_EXT:
    case IBV_FLOW_SPEC_IPV6:
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP:
    case IBV_FLOW_SPEC_ACTION_TAG:
    case IBV_FLOW_SPEC_ACTION_HANDLE:
    case IBV_FLOW_SPEC_ACTION_COUNT:
      return refuse(EOPNOTSUPP,
                    "the device has no specifications of type 0x%x: no tunnels, tags and handles.\n"
                    "Use ETH, IPV4, IPV4_EXT, IPV6, TCP, UDP, ACTION_DROP and ACTION_COUNT.",
                    type);
    default:
      return refuse(EINVAL,
                    "a specification has the type 0x%x, which is no constant of enum ibv_flow_spec_type.\n"
                    "Compare num_of_specs and the size of each specification with what lies behind the ibv_flow_attr.",
                    type);
  }
}

int set_network(FlowMatch& match, Frame::Network network) {
  if (match.network != Frame::Network::kOther) return refuse_second("IP");
  match.network = network;
  return 0;
}

int read_ethernet(const std::byte* from, uint16_t size, FlowMatch& match) {
  ibv_flow_spec_eth spec;
  if (!copy(from, size, spec)) return refuse_size(IBV_FLOW_SPEC_ETH, size);
  match.ethernet = {spec.val, spec.mask};
  return 0;
}

int read_ipv4(const std::byte* from, uint16_t size, FlowMatch& match) {
  ibv_flow_spec_ipv4 spec;
  if (!copy(from, size, spec)) return refuse_size(IBV_FLOW_SPEC_IPV4, size);
  match.ipv4.value.src_ip = spec.val.src_ip;
  match.ipv4.value.dst_ip = spec.val.dst_ip;
  match.ipv4.mask.src_ip = spec.mask.src_ip;
  match.ipv4.mask.dst_ip = spec.mask.dst_ip;
  return set_network(match, Frame::Network::kIpv4);
}

int read_ipv4_ext(const std::byte* from, uint16_t size, FlowMatch& match) {
  ibv_flow_spec_ipv4_ext spec;
  if (!copy(from, size, spec)) return refuse_size(IBV_FLOW_SPEC_IPV4_EXT, size);
  match.ipv4 = {spec.val, spec.mask};
  return set_network(match, Frame::Network::kIpv4);
}

// Without the byte at the end of the structure, which the program may leave as it is.
ibv_flow_ipv6_filter members_of(const ibv_flow_ipv6_filter& filter) {
  ibv_flow_ipv6_filter members = {};
  memcpy(&members, &filter, offsetof(ibv_flow_ipv6_filter, hop_limit) + sizeof(filter.hop_limit));
  return members;
}

int read_ipv6(const std::byte* from, uint16_t size, FlowMatch& match) {
  ibv_flow_spec_ipv6 spec;
  if (!copy(from, size, spec)) return refuse_size(IBV_FLOW_SPEC_IPV6, size);
  match.ipv6 = {members_of(spec.val), members_of(spec.mask)};
  return set_network(match, Frame::Network::kIpv6);
}

int read_ports(const std::byte* from, uint16_t size, unsigned type, FlowMatch& match) {
  ibv_flow_spec_tcp_udp spec;
  if (!copy(from, size, spec)) return refuse_size(type, size);
  if (match.transport != Frame::Transport::kOther) return refuse_second("TCP or UDP");
  match.transport = type == IBV_FLOW_SPEC_TCP ? Frame::Transport::kTcp : Frame::Transport::kUdp;
  match.ports = {spec.val, spec.mask};
  return 0;
}

int read_count(const std::byte* from, uint16_t size, FlowRule& rule) {
  ibv_flow_spec_counter_action spec;
  if (!copy(from, size, spec)) return refuse_size(IBV_FLOW_SPEC_ACTION_COUNT, size);
  if (spec.counters == nullptr || rule.counters != nullptr) {
    return refuse(EINVAL, "%s.\nGive the flow one result of ibv_create_counters().",
                  spec.counters == nullptr ? "a specification of the type ACTION_COUNT has no counters"
                                           : "the flow has two specifications of the type ACTION_COUNT");
  }
  rule.counters = spec.counters;
  return 0;
}

// ETH's ether_type excludes the IP header that another specification wants.
int check_ether_type(const FlowMatch& match) {
  const uint16_t wanted = match.network == Frame::Network::kIpv4   ? ETHERTYPE_IP
                          : match.network == Frame::Network::kIpv6 ? ETHERTYPE_IPV6
                                                                   : 0;
  const uint16_t difference = match.ethernet.value.ether_type ^ htons(wanted);
  if (wanted == 0 || (difference & match.ethernet.mask.ether_type) == 0) return 0;
  return refuse(EINVAL,
                "ether_type is 0x%04x, and the flow has a specification for IP with the type 0x%04x.\n"
                "Set ether_type to htons(0x%04x), in network byte order, or its mask to 0.",
                ntohs(match.ethernet.value.ether_type), wanted, wanted);
}

int read_specs(const std::byte* at, uint8_t count, FlowRule& rule) {
  for (uint8_t i = 0; i < count; i++) {
    SpecHeader header;
    memcpy(&header, at, sizeof(header));
    int error = 0;
    switch (header.type) {
      case IBV_FLOW_SPEC_ETH:
        error = read_ethernet(at, header.size, rule.match);
        break;
      case IBV_FLOW_SPEC_IPV4:
        error = read_ipv4(at, header.size, rule.match);
        break;
      case IBV_FLOW_SPEC_IPV4_EXT:
        error = read_ipv4_ext(at, header.size, rule.match);
        break;
      case IBV_FLOW_SPEC_IPV6:
        error = read_ipv6(at, header.size, rule.match);
        break;
      case IBV_FLOW_SPEC_TCP:
      case IBV_FLOW_SPEC_UDP:
        error = read_ports(at, header.size, header.type, rule.match);
        break;
      case IBV_FLOW_SPEC_ACTION_DROP:
        if (header.size < sizeof(ibv_flow_spec_action_drop)) return refuse_size(header.type, header.size);
        rule.drops = true;
        break;
      case IBV_FLOW_SPEC_ACTION_COUNT:
        error = read_count(at, header.size, rule);
        break;
      default:
        return refuse_spec(header.type);
    }
    if (error != 0) return error;
    at += header.size;
  }
  return check_ether_type(rule.match);
}

}  // namespace

int read_flow(const ibv_flow_attr& attr, FlowRule& rule) {
  if (attr.comp_mask != 0) return refuse(EINVAL, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr.comp_mask);
  if (const uint32_t unknown = attr.flags & ~kKnownFlags; unknown != 0) {
    return refuse(EINVAL,
                  "flags has 0x%x, and the device knows IBV_FLOW_ATTR_FLAGS_DONT_TRAP alone.\nLeave these bits out.",
                  unknown);
  }
  if (attr.port != 1)
    return refuse(EINVAL, "port is %u, and the device has one port, number 1.\nSet port to 1.", attr.port);
  uint32_t type = 0;
  memcpy(&type, &attr.type, sizeof(type));
  if (type > IBV_FLOW_ATTR_SNIFFER) {
    return refuse(EINVAL, "type is %u, which is no constant of enum ibv_flow_attr_type.\nUse IBV_FLOW_ATTR_NORMAL.",
                  type);
  }
  rule.type = attr.type;
  rule.priority = attr.priority;
  rule.continues = (attr.flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) != 0;
  const bool is_default = attr.type == IBV_FLOW_ATTR_ALL_DEFAULT || attr.type == IBV_FLOW_ATTR_MC_DEFAULT;
  if (is_default && rule.continues) {
    return refuse(EINVAL,
                  "a default flow is the last one, and flags has IBV_FLOW_ATTR_FLAGS_DONT_TRAP.\n"
                  "Leave this flag out.");
  }
  if (attr.priority > kMaxPriority) {
    return refuse(ENOMEM,
                  "priority is %u, and the device has the priorities 0 to %u, as an mlx5 device.\n"
                  "Set a lower number; 0 comes first.",
                  attr.priority, kMaxPriority);
  }
  if (attr.num_of_specs > kMaxSpecs) {
    return refuse(EINVAL, "num_of_specs is %u, and a flow has at most %d specifications.\nInitialize num_of_specs.",
                  attr.num_of_specs, kMaxSpecs);
  }
  // As mlx5, which ignores the specifications of other types.
  if (attr.type != IBV_FLOW_ATTR_NORMAL) return 0;
  return read_specs(reinterpret_cast<const std::byte*>(&attr) + sizeof(attr), attr.num_of_specs, rule);
}

}  // namespace dapple::soft
