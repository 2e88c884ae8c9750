// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dapple::face {

// The counts of a device, for all transports together.
struct DeviceCounts {
  uint64_t sent_packets = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;
  uint64_t sequence_naks_sent = 0;
  uint64_t rnr_naks_sent = 0;
  uint64_t duplicates = 0;
  uint64_t timeouts = 0;
  uint64_t retransmitted_packets = 0;
  uint64_t dropped_packets = 0;
};

// A file of a port's folder counters or hw_counters.
struct CounterFile {
  const char* name;
  uint64_t DeviceCounts::*count;  // null: this device never counts it, or `value` is its number
  uint32_t unit = 1;              // the file's number counts so many
  uint32_t value = 0;
};

// The standard counters of a port.
std::span<const CounterFile> port_counters();
// Those of the kernel's driver for the device; rxe's for an unknown one. The driver is the PCI function's: "mlx5_core".
std::span<const CounterFile> hardware_counters(const char* driver);

// With the end of line.
std::string counter_text(const CounterFile& file, const DeviceCounts& counts);

}  // namespace dapple::face
