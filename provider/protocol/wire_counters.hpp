// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// Any thread may read, and count unless a function says otherwise.
class Counter {
 public:
  void add(uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  // While no other thread counts.
  void add_alone(uint64_t count = 1) { set(value() + count); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  // As add(), and a full fence. On x86-64 the addition is one; the simulator (tests/sim/threads) runs the code of the
  // other machines.
  void add_and_fence(uint64_t count) {
#if defined(__x86_64__) && !defined(DAPPLE_SIMULATED)
    value_.fetch_add(count, std::memory_order_seq_cst);
#else
    value_.fetch_add(count, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

 private:
  std::atomic<uint64_t> value_{0};
};

// Counters of packets on a process' wire. Every packet that is not passed on counts once, by its first fault.
// counters.hpp lists the members in this order.
struct WireCounters {
  Counter received_packets;  // handed on
  Counter received_bytes;
  Counter received_batches;  // of packets that the kernel merged, single ones included
  Counter runts;             // too short for a BTH and an ICRC
  Counter giants;            // longer than any RoCE packet
  Counter unaligned;         // not a multiple of four bytes
  Counter foreign;           // of another program's QP number
  Counter bad_icrc;          // damaged, or changed on its way (NAT)
  Counter identification;    // an ICRC that fits only an IPv4 identification that the peer would not use now
  Counter fault_drops;       // by DAPPLE_FAULTS

  Counter sent_packets;
  Counter sent_bytes;
  Counter sent_batches;      // messages to the kernel, each with one or more packets
  Counter send_full;         // packets dropped because the kernel's buffer was full
  Counter send_errors;       // packets that the kernel refused
  Counter segmentation_off;  // times that the kernel refused to segment
  Counter send_error;        // the errno of the last packet that the kernel refused
};

// Packets by shared memory.
struct SameHostCounters {
  Counter received_packets;
  Counter received_bytes;
  Counter sent_packets;  // dappled's own; a program's are counted by devices (DeviceTraffic)
  Counter broken;        // rings whose content no writer of ours makes
};

// Bytes that this process has copied to and from the memory of other processes.
struct PlacementCounters {
  Counter writes;
  Counter reads;
  Counter bytes;
  Counter fetches;  // for Sends that refer to their bytes
  Counter fetched_bytes;
  Counter fetched_ahead;  // with the message before, in one call
};

}  // namespace dapple::soft
