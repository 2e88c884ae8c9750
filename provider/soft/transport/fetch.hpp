// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/protocol/wire_counters.hpp"
#include "provider/soft/placement/peer_memory.hpp"
#include "provider/soft/same_host/reference.hpp"
#include "provider/soft/transport/fetch_ahead.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// Shorter parts of messages are copied through the ring.
inline constexpr uint64_t kMinReferred = GuardedProcess::kMin;

// The bytes that a packet refers to, in the memory of the peer that has sent it.
class FetchedBytes final : public roce::Loan {
 public:
  // `peer`: null if this process does not reach the peer's memory. `sender`: the peer's queue pair. `ahead`: null if
  // messages are fetched one by one. All references outlive this.
  FetchedBytes(PeerMemory* peer, const QpDescription& sender, const RingReference& reference,
               PlacementCounters& counters, const FetchAhead* ahead)
      : Loan(reference.length, reference.packets),
        peer_(peer),
        sender_(sender),
        reference_(reference),
        counters_(counters),
        ahead_(ahead) {}
  // False also if the peer has taken the memory back, or its requests have failed meanwhile.
  bool copy(uint64_t offset, std::byte* to, size_t size) const override;

 private:
  bool is_there(const std::byte* to) const;
  bool copy_with_next(std::byte* to) const;
  bool copy_both(std::byte* to, std::byte* next_to) const;
  bool copy_parts(uint64_t offset, std::byte* to, size_t size) const;
  bool copy_from(const RingReference::Source& source, uint64_t offset, std::byte* to, size_t size) const;

  PeerMemory* const peer_;
  const QpDescription& sender_;
  const RingReference& reference_;
  PlacementCounters& counters_;
  const FetchAhead* const ahead_;
};

}  // namespace dapple::soft
