// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Packets that carry a request's bytes: Sends and RDMA Writes, of any transport.
#ifndef DAPPLE_ROCE_DATA_PACKET_HPP
#define DAPPLE_ROCE_DATA_PACKET_HPP

#include "roce/core.hpp"

namespace dapple::roce {

// The headers of the packet that stands for the `count` packets from number `packet` on of the entry's message, without
// the fields that belong to the connection. The pad is that of one packet.
Headers data_headers(const SendEntry& entry, Transport transport, uint32_t packet, uint32_t mtu, uint32_t count = 1);

enum class Emitted : uint8_t {
  kSent,
  kFull,   // the sink takes no more now
  kFault,  // the segments' memory cannot be read
};
Emitted emit_data(Core& core, const SendEntry& entry, const Headers& headers, uint32_t packet, PacketSink& sink,
                  const AddressVector* to);

}  // namespace dapple::roce

#endif  // DAPPLE_ROCE_DATA_PACKET_HPP
