// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "roce/packet/icrc.hpp"

namespace dapple::soft {

// Sees the packets that pass a wire. The wire's threads call it.
class PacketTap {
 public:
  enum class Direction : uint8_t { kSent, kReceived };
  // `transport`: from the BTH to the ICRC.
  virtual void write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class,
                     uint8_t hop_limit, std::span<const std::byte> transport) = 0;

 protected:
  ~PacketTap() = default;
};

}  // namespace dapple::soft
