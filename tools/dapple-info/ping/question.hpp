// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The packets of a ping: a SIDR REQ for a service that does not exist, which every RoCE node with connection management
// answers with a SIDR REP, and packets of a given size that a node ignores. Nothing here uses a socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dapple::info {

using Gid16 = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

struct Ends {
  Gid16 local{};
  Gid16 peer{};
};

bool is_ipv4(const Gid16& address);

// The packet from the BTH to the ICRC. source_port: the UDP source port, which the ICRC covers.
std::vector<std::byte> question(const Ends& ends, uint16_t source_port, uint32_t request_id, uint64_t transaction);

// A packet in an IP datagram of this size for a queue pair that does not exist: the receiver counts it and drops it.
std::vector<std::byte> filler(const Ends& ends, uint16_t source_port, size_t datagram_size);

enum class Reading {
  kForeign,  // no answer to this question
  kGood,     // an answer as the peer sent it
  kPort,     // an answer whose source port was changed on the way
  kAddress,  // an answer whose source address was changed on the way
  kBadIcrc,  // an answer with a wrong ICRC
};

// `from`, `source_port`: the packet's apparent source.
Reading read_answer(std::span<const std::byte> packet, const Ends& ends, const Gid16& from, uint16_t source_port,
                    uint32_t request_id, uint64_t transaction);

}  // namespace dapple::info
