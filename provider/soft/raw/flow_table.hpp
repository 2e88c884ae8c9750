// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The flows of a device in this process, and the queue pairs that they steer a frame to.
#pragma once

#include <stdint.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "provider/protocol/messages.hpp"
#include "provider/soft/raw/flow_counters.hpp"
#include "provider/soft/raw/frame.hpp"

namespace dapple::soft {

struct Qp;

// The bytes of a filter's fields. Those behind them have any value.
template <typename Filter>
inline constexpr size_t kFilterBytes = sizeof(Filter);
template <>
inline constexpr size_t kFilterBytes<ibv_flow_ipv6_filter> = offsetof(ibv_flow_ipv6_filter, hop_limit) + 1;

// The values that a flow wants in the header fields of a frame, where the mask has bits.
struct FlowMatch {
  template <typename Filter>
  struct Wanted {
    Filter value = {};
    Filter mask = {};

    static constexpr size_t kBytes = kFilterBytes<Filter>;
    static_assert(std::has_unique_object_representations_v<Filter> || kBytes < sizeof(Filter));

    bool fits(const Filter& found) const {
      unsigned char v[kBytes], m[kBytes], f[kBytes];
      std::memcpy(v, &value, sizeof(v));
      std::memcpy(m, &mask, sizeof(m));
      std::memcpy(f, &found, sizeof(f));
      unsigned char differences = 0;
      for (size_t i = 0; i < sizeof(v); i++) differences |= static_cast<unsigned char>((v[i] ^ f[i]) & m[i]);
      return differences == 0;
    }
  };

  Frame::Network network = Frame::Network::kOther;        // kOther: any
  Frame::Transport transport = Frame::Transport::kOther;  // kOther: any
  Wanted<ibv_flow_eth_filter> ethernet;
  Wanted<ibv_flow_ipv4_ext_filter> ipv4;
  Wanted<ibv_flow_ipv6_filter> ipv6;
  Wanted<ibv_flow_tcp_udp_filter> ports;

  bool fits(const Frame& frame) const {
    if (network != Frame::Network::kOther && network != frame.network) return false;
    if (transport != Frame::Transport::kOther && transport != frame.transport) return false;
    if (ethernet.mask.vlan_tag != 0 && !frame.has_vlan) return false;
    return ethernet.fits(frame.ethernet) && ipv4.fits(frame.ipv4) && ipv6.fits(frame.ipv6) && ports.fits(frame.ports);
  }
};

struct FlowRule {
  ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL;
  uint16_t priority = 0;             // 0 comes first
  bool continues = false;            // IBV_FLOW_ATTR_FLAGS_DONT_TRAP: later flows get the frame, too
  bool drops = false;                // IBV_FLOW_SPEC_ACTION_DROP
  ibv_counters* counters = nullptr;  // of a normal flow; IBV_FLOW_SPEC_ACTION_COUNT
  FlowMatch match;                   // of a normal flow
};

// A place in the table. It stays where it is.
struct FlowEntry {
  FlowRule rule;
  Qp* qp = nullptr;
  FlowCounters* counters = nullptr;
  FlowEntry* next = nullptr;  // the table's
};

// Guarded by the lock of receiving.
class FlowTable {
 public:
  // Behind the flows that are there and have the same priority, but one that continues before all that do not.
  void add(FlowEntry& entry);
  void remove(FlowEntry& entry);
  bool empty() const { return first_ == nullptr; }
  // Removes each flow that is_wanted(entry) selects, and calls removed(entry).
  template <typename IsWanted, typename Removed>
  void remove_if(IsWanted is_wanted, Removed removed) {
    for (FlowEntry** at = &first_; *at != nullptr;) {
      FlowEntry& entry = **at;
      if (is_wanted(entry)) {
        *at = entry.next;
        removed(entry);
      } else {
        at = &entry.next;
      }
    }
  }

  // Calls deliver(qp) for each queue pair that gets the frame: those of sniffers, and those of the first normal flow
  // that fits, with those of flows that want the same at the same priority. A frame that no normal flow takes goes to
  // the default flows. Several sniffers of a queue pair are as one, as are its default flows, and its normal flows that
  // want the same at the same priority.
  template <typename Deliver>
  void steer(const Frame& frame, Deliver deliver) const;

 private:
  static bool wants_the_same(const FlowRule& a, const FlowRule& b);
  // An earlier flow of the same queue pair, with takes(rule), has brought the frame.
  template <typename Takes>
  bool is_repeated(const FlowEntry& entry, Takes takes) const {
    for (const FlowEntry* earlier = first_; earlier != &entry; earlier = earlier->next) {
      if (earlier->qp == entry.qp && takes(earlier->rule)) return true;
    }
    return false;
  }
  // Calls deliver(qp) for each queue pair that has a flow with takes(rule).
  template <typename Takes, typename Deliver>
  void deliver_once(Takes takes, Deliver deliver) const {
    for (const FlowEntry* entry = first_; entry != nullptr; entry = entry->next) {
      if (takes(entry->rule) && !is_repeated(*entry, takes)) deliver(*entry->qp);
    }
  }
  template <typename Deliver>
  bool steer_normal(const Frame& frame, Deliver deliver) const;

  FlowEntry* first_ = nullptr;  // by priority; within one, those that continue come first
};

// True if a flow has taken the frame.
template <typename Deliver>
bool FlowTable::steer_normal(const Frame& frame, Deliver deliver) const {
  const FlowEntry* taken = nullptr;
  for (const FlowEntry* entry = first_; entry != nullptr; entry = entry->next) {
    const FlowRule& rule = entry->rule;
    if (rule.type != IBV_FLOW_ATTR_NORMAL) continue;
    if (taken != nullptr && rule.priority != taken->rule.priority) break;
    if (!rule.match.fits(frame) || (taken != nullptr && !wants_the_same(taken->rule, rule))) continue;
    if (entry->counters != nullptr) entry->counters->add(frame.bytes.size());
    const auto brings_this = [&](const FlowRule& other) {
      return other.type == rule.type && other.priority == rule.priority && other.continues == rule.continues &&
             !other.drops && wants_the_same(other, rule);
    };
    if (!rule.drops && !is_repeated(*entry, brings_this)) deliver(*entry->qp);
    if (!rule.continues && taken == nullptr) taken = entry;
  }
  return taken != nullptr;
}

template <typename Deliver>
void FlowTable::steer(const Frame& frame, Deliver deliver) const {
  deliver_once([](const FlowRule& rule) { return rule.type == IBV_FLOW_ATTR_SNIFFER; }, deliver);
  // The packets of the RDMA transport do not come as far.
  if (frame.transport == Frame::Transport::kUdp && frame.ports.dst_port == __builtin_bswap16(kRocePort)) return;
  if (steer_normal(frame, deliver)) return;
  const auto takes_the_rest = [&](const FlowRule& rule) {
    return rule.type == IBV_FLOW_ATTR_ALL_DEFAULT || (rule.type == IBV_FLOW_ATTR_MC_DEFAULT && frame.is_multicast());
  };
  deliver_once(takes_the_rest, deliver);
}

}  // namespace dapple::soft
