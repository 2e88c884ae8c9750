// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The words by which a process tells a peer that it is copying to or from the peer's memory. They lie in the memory of
// the ring that leads to the peer. No lock is shared, so a killed process leaves none behind.
//
// The copying side stores the tickets of the entries that it uses, and then looks whether the entries are alive. The
// owner makes an entry dead, and then waits until no word has its ticket. All four accesses are sequentially
// consistent: the copying side sees the dead entry, or the owner sees the ticket.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// One for each thread that copies. More threads at a time send packets.
inline constexpr uint32_t kAnnouncements = 16;

struct alignas(64) Announcement {
  std::atomic<uint64_t> tickets;  // a key's in the lower half, a queue pair's in the upper; 0: none
};

inline constexpr uint64_t announced(uint32_t key_ticket, uint32_t qp_ticket) {
  return uint64_t{qp_ticket} << 32 | key_ticket;
}

// One entry, as a part of a word.
struct AnnouncedEntry {
  uint64_t mask;
  uint64_t ticket;

  static constexpr AnnouncedEntry key(uint32_t ticket) { return {announced(UINT32_MAX, 0), announced(ticket, 0)}; }
  static constexpr AnnouncedEntry qp(uint32_t ticket) { return {announced(0, UINT32_MAX), announced(0, ticket)}; }
  bool is_in(const Announcement& word) const { return (word.tickets.load(std::memory_order_seq_cst) & mask) == ticket; }
};

}  // namespace dapple::soft
