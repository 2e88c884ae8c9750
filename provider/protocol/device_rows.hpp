// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The counts of each device of a process, in memory that the process shares with dappled. The counts of a killed
// program stay, and the slot's next owner adds to them.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "provider/protocol/wire_counters.hpp"

namespace dapple::soft {

struct DeviceTraffic {
  Counter sent_packets;            // by the network
  Counter same_host_sent_packets;  // by shared memory
  // Both ways, and what was copied to or from other processes' memory in place of packets.
  Counter sent_bytes;
  Counter received_packets;
  Counter received_bytes;
  Counter sequence_naks_sent;
  Counter rnr_naks_sent;
  Counter duplicates;
  Counter timeouts;
  Counter retransmitted_packets;
  Counter dropped_packets;
};

// Of queue pairs without a device; nobody reads it.
inline constinit DeviceTraffic no_device;

struct DeviceRow {
  std::atomic<uint64_t> guid;  // of DeviceInfo; 0: free
  DeviceTraffic traffic;
};

// As many devices as a process sees.
inline constexpr size_t kMaxDeviceRows = 64;

struct SlotDevices {
  DeviceRow rows[kMaxDeviceRows];
  DeviceTraffic others;  // of devices that found no free row
};

// The row of a device, for the slot's owner. Any thread may call it.
inline DeviceTraffic& traffic_of(SlotDevices& devices, uint64_t guid) {
  assert(guid != 0);
  for (DeviceRow& row : devices.rows) {
    uint64_t present = row.guid.load(std::memory_order_relaxed);
    if (present == 0 && row.guid.compare_exchange_strong(present, guid)) return row.traffic;
    if (present == guid) return row.traffic;
  }
  return devices.others;
}

// For dappled, which trusts no row: null if the process has not used the device.
inline const DeviceTraffic* find_traffic(const SlotDevices& devices, uint64_t guid) {
  for (const DeviceRow& row : devices.rows) {
    if (row.guid.load(std::memory_order_relaxed) == guid) return &row.traffic;
  }
  return nullptr;
}

}  // namespace dapple::soft
