// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A packet as the kernel gives it, with its ICRC, which nobody has checked yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "provider/network/gid.hpp"
#include "roce/packet/icrc.hpp"

namespace dapple::soft {

struct DatagramOrigin {
  uint8_t source[16];
  uint8_t destination[16];
  uint32_t netdev_index;
  uint16_t source_port;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint32_t number;  // of the packet among those that the kernel merged
  // All merged packets but the last have one size, so the ICRC's prefix is computed once for them.
  uint32_t icrc_prefix;
  size_t icrc_prefix_size;  // of the transport part that it is for; 0: none yet

  roce::IcrcAddresses icrc_addresses() const {
    roce::IcrcAddresses addresses;
    addresses.ipv6 = !is_ipv4(source);
    addresses.source_port = source_port;
    const size_t from = addresses.ipv6 ? 0 : 12;
    memcpy(addresses.source, source + from, 16 - from);
    memcpy(addresses.destination, destination + from, 16 - from);
    return addresses;
  }
};

class DatagramSink {
 public:
  virtual void arrived(DatagramOrigin& origin, std::span<std::byte> packet) = 0;

 protected:
  ~DatagramSink() = default;
};

}  // namespace dapple::soft
