// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Notes about the packets of a connected peer, for dapple-run --explain. They show something of a queue pair on another
// host, which nobody here knows otherwise. Guarded by the lock of the queue pair that receives them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "roce/core/queue_pair.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

struct PeersPackets {
  bool any = false;      // packets of the peer came
  bool answers = false;  // one of them for a PSN of this queue pair
  uint32_t first_psn = 0;
  // The PSN that the peer expects, if it is none of this queue pair.
  std::optional<uint32_t> expected_psn;
  uint32_t path_mtu = 0;  // the peer's; 0: no packet showed it
  // The last other address from which packets for this queue pair came.
  std::optional<std::array<uint8_t, 16>> stranger;

  // The queue pair gets a peer.
  void meet_peer() { *this = {}; }
  // The queue pair begins to send.
  void begin(uint32_t send_psn) { first_psn = send_psn; }

  // A packet from the peer's address, before the queue pair takes it.
  void see(const roce::Packet& packet, const roce::QueuePair& queue_pair);
  void see_from(const uint8_t* source);
};

}  // namespace dapple::soft
