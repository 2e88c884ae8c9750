// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/records/record_file.hpp"
#include "provider/soft/wire/packet_tap.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// Writes packets to a pcap file (link type Linux cooked, which has the direction) with the IP and UDP headers that they
// had on the wire, as far as a UDP socket knows them. Several processes may write to one file: each record is appended
// at once. Any thread.
class PcapWriter final : public PacketTap {
 public:
  PcapWriter() = default;
  // A file of open_capture_file().
  explicit PcapWriter(OwnedFd file) : file_(std::move(file)) {}
  // As open_capture_file().
  bool open(const char* name, Problem& problem);
  void write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
             std::span<const std::byte> transport) override;

 private:
  RecordFile file_;
};

}  // namespace dapple::soft
