// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The packets of DAPPLE_PCAP.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roce/packet/packet.hpp"

namespace dapple::picture {

struct CapturedPacket {
  int64_t time_ns = 0;   // since 1970
  bool is_sent = false;  // where it was captured
  std::string source;    // the address
  std::string destination;
  roce::Headers headers;
  const roce::OpcodeInfo* info = nullptr;  // null for a packet that is not of RoCEv2, or is malformed
  size_t payload_size = 0;
  std::string bytes;  // behind the UDP header: a packet that is sent and received has the same twice
};

// In the order of their times. A part of a packet at the end of the file is left out. Throws std::runtime_error with
// one line if the file cannot be read, or is no capture of ours.
std::vector<CapturedPacket> read_packets(const std::string& path);

// As the specification calls it, such as "SEND_ONLY".
std::string name_of(const roce::OpcodeInfo& info);

// "NAK: remote access error", "RNR NAK", or nothing.
std::string refusal_of(const CapturedPacket& packet);

}  // namespace dapple::picture
