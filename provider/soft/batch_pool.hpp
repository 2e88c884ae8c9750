// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Buffers for packets, kept for the next sender.
#ifndef DAPPLE_PROVIDER_SOFT_BATCH_POOL_HPP
#define DAPPLE_PROVIDER_SOFT_BATCH_POOL_HPP

#include <stdint.h>

#include <memory>
#include <mutex>

#include "provider/soft/brief_mutex.hpp"
#include "provider/soft/same_host/links.hpp"
#include "provider/soft/wire.hpp"

namespace dapple::soft {

struct Qp;

// Internally locked.
class BatchPool {
 public:
  explicit BatchPool(Wire& wire) : wire_(wire) {}

  // Null without memory.
  std::unique_ptr<SendBatch> take();
  void give(std::unique_ptr<SendBatch> batch);

 private:
  // More threads rarely send at the same time.
  static constexpr uint32_t kKept = 8;

  Wire& wire_;
  BriefMutex mutex_;
  std::unique_ptr<SendBatch> kept_[kKept];
  uint32_t count_ = 0;
};

// The sink that one turn of a queue pair writes to. Takes a batch when there is something to send; a turn ends after
// some packets, so that queue pairs with much to send take turns.
class Turn final : public roce::PacketSink {
 public:
  // A turn lives under the queue pair's lock.
  Turn(BatchPool& pool, Qp& qp);
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  std::byte* reserve(size_t size) override;
  void commit(const roce::AddressVector* to) override;
  std::byte* refer(const roce::Reference& reference, size_t headers) override;
  roce::Placed place(const roce::Transfer& transfer, uint64_t& done) override;
  bool would_place(const roce::Transfer& transfer) override;
  // Sends the committed packets. Afterwards only the counts may be read.
  void end();
  uint32_t packets() const { return packets_; }
  // Counts of the transfers that were copied to or from the peer's memory instead of sent.
  struct Placements {
    uint32_t writes = 0;
    uint32_t reads = 0;
    uint64_t bytes = 0;
  };
  const Placements& placements() const { return placements_; }
  // True if its packets go to a ring.
  bool uses_ring() const { return ring_ != nullptr; }

 private:
  static constexpr uint32_t kPacketsOfATurn = 256;
  static constexpr uint64_t kPlacedBytesOfATurn = 1024 * 1024;

  bool describe(const roce::Reference& reference, RingReference& made) const;
  std::byte* reserve_in_ring(size_t size, EntryKind kind);
  bool reaches_peer() const;
  bool packets_are_quicker(const roce::Transfer& transfer) const;

  BatchPool& pool_;
  Qp& qp_;
  const Path* const path_;  // to the peer, or null if each packet has its own address (UD)
  RingTo* const ring_;      // to the peer's process, or null; packets take it as long as the peer lives
  bool has_ring_ = false;   // and its lock
  std::unique_ptr<SendBatch> batch_;
  std::byte* room_ = nullptr;
  uint32_t packets_ = 0;
  Placements placements_;
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_BATCH_POOL_HPP
