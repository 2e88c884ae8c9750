// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/packet/identification.hpp"

namespace dapple::soft {
namespace {

// A socket that is not connected sends 0 with DF set, and the segments of one send count up from there.
constexpr uint16_t kAlways = 127;
// For other packets, Linux counts identifications up for groups of peers. This process sees only its own packets, and
// the counter may serve a stream to another process of this host meanwhile: a quick peer sends kPerMillisecond packets.
// kSlack allows for packets that came out of order.
constexpr int64_t kSlack = 2048;
constexpr int64_t kPerMillisecond = 1000;

}  // namespace

void IdentificationCheck::note_zero(uint32_t peer) {
  Entry& entry = entry_of(peer);
  if (entry.peer != peer) entry = {.peer = peer};
  entry.doubtful = false;
  if (!entry.uses_no_counter()) entry.zeros++;
}

bool IdentificationCheck::plausible(uint32_t peer, uint16_t identification, uint64_t milliseconds) {
  if (identification <= kAlways) return true;
  Entry& entry = entry_of(peer);
  if (entry.peer != peer) entry = {.peer = peer};
  const auto passed = static_cast<int64_t>(milliseconds - entry.seen);
  const int64_t ahead = static_cast<int16_t>(identification - entry.last);
  if (entry.uses_no_counter()) {
    // Damage is rare, and explains itself by any identification. So two such packets in a row, with near
    // identifications, show that the peer uses a counter now.
    const bool again = entry.doubtful && ahead >= -kSlack && ahead <= kSlack;
    entry.doubtful = true;
    entry.last = identification;
    if (!again) return false;
    entry = {.peer = peer};
  }
  bool good = true;
  if (entry.known) {
    // If the counter may have advanced by half of its range, any value is possible.
    const int64_t most = passed > 0x8000 ? 0x8000 : kSlack + passed * kPerMillisecond;
    good = (ahead >= -kSlack && ahead <= most) || most >= 0x8000;
  }
  if (good) entry = {.peer = peer, .last = identification, .known = true, .seen = milliseconds};
  return good;
}

}  // namespace dapple::soft
