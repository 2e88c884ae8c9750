// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Packets that carry a request's bytes: Sends and RDMA Writes, of any transport.
#pragma once

#include "roce/core/core.hpp"

namespace dapple::roce {

struct DataPacket {
  Transport transport = Transport::kRc;
  bool ack_request = false;
  uint32_t number = 0;  // within its message
  uint32_t count = 1;   // the packets that it stands for
  uint32_t destination_qpn = 0;
  Deth deth = {};                     // UD
  const AddressVector* to = nullptr;  // UD
};

enum class Emitted : uint8_t {
  kSent,
  kFull,   // the sink takes no more now
  kFault,  // the segments' memory cannot be read
};
Emitted emit_data(Core& core, const SendEntry& entry, const DataPacket& packet, PacketSink& sink);
// The same for a packet that brings a reference to its bytes. No memory is read, so there is no fault: false for kFull.
bool emit_reference(Core& core, const SendEntry& entry, const DataPacket& packet, PacketSink& sink);

}  // namespace dapple::roce
