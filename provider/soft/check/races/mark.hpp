// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a queue pair tells its peer on another host: the payload of a packet with roce::kHostOpcode, which goes ahead of
// the packet that it is about. Between programs of one host the pages of race_pages.hpp have this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "provider/soft/check/races/known_requests.hpp"

namespace dapple::soft::check {

struct Mark {
  enum class Kind : uint8_t {
    kRequest = 1,  // the packets of a request follow
    kAnswer = 2,   // a packet with the result of a Read or an atomic follows
    kRace = 3,     // a request of the peer races at the memory of the sender
  };

  Kind kind = Kind::kRequest;
  int32_t process = 0;  // the sender's
  uint64_t host = 0;    // the sender's number, not kThisHost
  uint64_t sent = 0;    // the sender's time
  uint64_t stamp = 0;   // of the request, in the time of its program
  uint32_t psn = 0;     // the first one of the request, or that of the answer's packet
  // kRequest: the packets. kAnswer: check_of() the packet. kRace: the number of the other queue pair.
  uint32_t extent = 0;
  int32_t other_process = 0;  // kRace
  // kRequest: at the post. kAnswer: to the target, when it answered. Names have the numbers of hosts.
  KnownRequests known;
};

inline constexpr size_t kMarkHeaderSize = 56;
inline constexpr size_t kMarkEntrySize = 16;
inline constexpr size_t kMaxMarkBytes = kMarkHeaderSize + KnownRequests::kMax * kMarkEntrySize;

using MarkBytes = std::array<std::byte, kMaxMarkBytes>;

// Tells whether a peer would take the mark.
bool is_possible(const Mark& mark);
// Returns the size. The mark is possible.
size_t write_mark(const Mark& mark, MarkBytes& bytes);
// None if it is no mark of this version. Every byte may be hostile.
std::optional<Mark> read_mark(std::span<const std::byte> bytes);

// From the view of its sender to that of a receiver with the number `own`, which has got it at the time `now`: names of
// the receiver's own host have kThisHost, and the times are those of the receiver and not too early. `slept`: as long
// the receiver's clock may have stood still since the floor.
void take_over(Mark& mark, uint64_t own, uint64_t now, uint64_t slept);

}  // namespace dapple::soft::check
