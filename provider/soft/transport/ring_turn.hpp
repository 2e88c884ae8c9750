// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

#include <cstddef>

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/same_host/reference.hpp"
#include "provider/soft/same_host/ring.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// The sink that one turn of a queue pair writes to if its peer is on this host: packets go to the ring, and the bytes
// of Writes and Reads to and from the peer's memory.
class RingTurn final : public roce::PacketSink {
 public:
  // A turn lives under the queue pair's lock.
  RingTurn(Qp& qp, RingTo& ring, const Publication& publication);
  ~RingTurn() { end(); }
  RingTurn(const RingTurn&) = delete;
  RingTurn& operator=(const RingTurn&) = delete;

  std::byte* reserve(size_t size) override;
  void commit(const roce::AddressVector* to) override;
  std::byte* refer(const roce::Reference& reference, size_t headers) override;
  roce::Placed place(const roce::Transfer& transfer, uint64_t& done) override;
  bool would_place(const roce::Transfer& transfer) override;
  // Publishes the committed packets. Afterwards only the counts may be read.
  void end();
  uint32_t packets() const { return packets_; }
  // Counts of the transfers that were copied to or from the peer's memory instead of sent.
  struct Placements {
    uint32_t writes = 0;
    uint32_t reads = 0;
    uint64_t bytes = 0;       // both ways
    uint64_t read_bytes = 0;  // from there
  };
  const Placements& placements() const { return placements_; }

 private:
  std::byte* reserve(size_t size, EntryKind kind);
  bool describe(const roce::Reference& reference, RingReference& made) const;
  bool reaches_peer() const { return ring_.peer_memory().usable(); }
  bool packets_are_quicker(const roce::Transfer& transfer) const;

  Qp& qp_;
  RingTo& ring_;
  const Publication& publication_;  // of this process
  bool is_locked_ = false;          // the ring, by this turn
  uint32_t packets_ = 0;
  size_t reserved_ = 0;  // bytes of the packet that is not committed yet
  uint64_t bytes_ = 0;
  Placements placements_;
};

}  // namespace dapple::soft
