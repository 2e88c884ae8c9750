// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The IPv4 identifications that peers use. The ICRC covers the identification, which a UDP socket does not show; a
// receiver finds the one that explains the ICRC (roce::icrc_identification). That makes 2^16 of the 2^32 ICRCs right:
// of a million packets that are damaged on the way, some dozens would pass, even with two changed bits. So the
// identification must also be one that the peer would use now.
#pragma once

#include <cstdint>

namespace dapple::soft {

// For one thread at a time.
class IdentificationCheck {
 public:
  // An IPv4 peer has sent a packet with the identification 0, or some that the kernel merged from there on. After many
  // of them in a row, the peer counts as one that uses no counter.
  void note_zero(uint32_t peer);
  // `peer`: an IPv4 address. `milliseconds`: of any clock that never goes back. False: drop the packet. If the peer
  // uses a counter now, the packet after the next is plausible again at the latest.
  bool plausible(uint32_t peer, uint16_t identification, uint64_t milliseconds);

  // A counter has the value 0 once in 65,536 packets.
  static constexpr uint16_t kZerosInARow = 32;

 private:
  struct Entry {
    uint32_t peer = 0;
    uint16_t last = 0;
    uint16_t zeros = 0;     // in a row
    bool known = false;     // `last` and `seen` are those of a counter
    bool doubtful = false;  // `last` is that of a refused packet, because the peer has used no counter
    uint64_t seen = 0;
    bool uses_no_counter() const { return zeros >= kZerosInARow; }
  };
  Entry& entry_of(uint32_t peer) { return entries_[(peer * 0x9E3779B1U) >> 24]; }
  static constexpr uint32_t kEntries = 256;  // a power of 2; for peers that share an entry the check is less strict
  Entry entries_[kEntries];
};

}  // namespace dapple::soft
