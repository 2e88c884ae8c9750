// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// All counters of a slot, in memory that the slot's owner shares with dappled. The owner counts there as in any other
// memory. dappled can add the counters at any time, and the counts of a killed program stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "provider/protocol/wire_counters.hpp"

namespace dapple::soft {

// Received packets that were not for any queue pair.
struct NodeCounters {
  Counter malformed;  // headers that fit no opcode
  Counter no_queue_pair;
  Counter wrong_address;  // for a queue pair that is connected with another address
  Counter wrong_pkey;
};

// The sums of roce::QpCounters over all queue pairs.
struct EngineCounters {
  Counter sequence_naks_sent;
  Counter rnr_naks_sent;
  Counter duplicates;
  Counter timeouts;
  Counter retransmitted_packets;
  Counter dropped_packets;
};

struct SlotCounters {
  NodeCounters node;
  EngineCounters engine;
  SameHostCounters same_host;
  PlacementCounters placement;
  WireCounters wire;
};

struct CounterName {
  const char* key;    // for programs
  const char* title;  // for people
  bool bad;           // a packet that was not acted on
};

// In the order of SlotCounters' members, without the last, send_error, which cannot be summed.
inline constexpr CounterName kCounterNames[] = {
    {"malformed", "headers that match no opcode", true},
    {"no_queue_pair", "for a queue pair that does not exist", true},
    {"wrong_address", "from or to an address without a connection", true},
    {"wrong_pkey", "wrong P_Key", true},
    {"sequence_naks_sent", "sequence errors (NAK sent)", false},
    {"rnr_naks_sent", "receiver not ready (RNR NAK sent)", false},
    {"duplicates", "requests received again", false},
    {"timeouts", "acknowledgement timeouts", false},
    {"retransmitted_packets", "packets sent again", false},
    {"dropped_packets", "not allowed in the queue pair's state", true},
    {"same_host_received_packets", "packets received from programs of this host", false},
    {"same_host_received_bytes", "their bytes", false},
    {"same_host_sent_packets", "packets sent to programs of this host", false},
    {"same_host_broken", "rings that a program of this host has overwritten", true},
    {"placed_writes", "RDMA Writes copied to memory of programs of this host", false},
    {"placed_reads", "RDMA Reads copied from there", false},
    {"placed_bytes", "their bytes", false},
    {"fetches", "copies from there for Sends", false},
    {"fetched_bytes", "their bytes", false},
    {"fetched_ahead", "Sends whose bytes were copied with those of the Send before", false},
    {"received_packets", "packets received", false},
    {"received_bytes", "bytes received", false},
    {"received_batches", "receptions, with packets that the kernel merged", false},
    {"runts", "too short for RoCE", true},
    {"giants", "too long for RoCE", true},
    {"unaligned", "not a multiple of four bytes", true},
    {"foreign", "for another program's slot", true},
    {"bad_icrc", "wrong ICRC: damaged, or changed by NAT", true},
    {"identification", "ICRC that matches only an unlikely IPv4 identification", true},
    {"fault_drops", "dropped by DAPPLE_FAULTS", true},
    {"sent_packets", "packets sent", false},
    {"sent_bytes", "bytes sent", false},
    {"sent_batches", "transmissions, with packets that the kernel cuts", false},
    {"send_full", "not sent because the kernel's buffer was full", false},
    {"send_errors", "not sent because the kernel refused", false},
    {"segmentation_off", "times that the kernel refused to cut packets", false},
};
inline constexpr size_t kCounterCount = sizeof kCounterNames / sizeof kCounterNames[0];

inline constexpr size_t kSameHostSentPackets = offsetof(SlotCounters, same_host.sent_packets) / sizeof(Counter);

static_assert(sizeof(Counter) == 8 && std::is_standard_layout_v<SlotCounters>);
static_assert(sizeof(SlotCounters) == (kCounterCount + 1) * sizeof(Counter));

// In the order of kCounterNames.
inline std::span<const Counter, kCounterCount> all_of(const SlotCounters& counters) {
  return std::span<const Counter, kCounterCount>(reinterpret_cast<const Counter*>(&counters), kCounterCount);
}

}  // namespace dapple::soft
