// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/batch_pool.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "provider/soft/context.hpp"
#include "provider/soft/node.hpp"
#include "provider/soft/placement/fetch.hpp"
#include "provider/soft/placement/place.hpp"

namespace dapple::soft {
namespace {

// Two cache lines. To gather the bytes of a longer packet takes longer than to publish the packets before it.
constexpr size_t kShort = 128;

}  // namespace

std::unique_ptr<SendBatch> BatchPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (count_ > 0) return std::move(kept_[--count_]);
  }
  return std::unique_ptr<SendBatch>(wire_.make_batch());
}

void BatchPool::give(std::unique_ptr<SendBatch> batch) {
  const std::lock_guard lock(mutex_);
  assert(batch != nullptr);
  if (count_ < kKept) kept_[count_++] = std::move(batch);
}

Turn::Turn(BatchPool& pool, Qp& qp)
    : pool_(pool),
      qp_(qp),
      path_(qp.init.qp_type != IBV_QPT_UD ? &qp.path : nullptr),
      ring_(qp.ring != nullptr && !qp.ring->broken() ? qp.ring : nullptr) {}

void Turn::end() {
  if (has_ring_) {
    ring_->writer().publish();
    ring_->mutex.unlock();
    has_ring_ = false;
    if (packets_ > 0) ring_->wake_reader();
  }
  if (batch_ == nullptr) return;
  batch_->flush();
  pool_.give(std::move(batch_));
}

std::byte* Turn::reserve(size_t size) {
  if (packets_ == kPacketsOfATurn) return nullptr;
  if (ring_ != nullptr) return reserve_in_ring(size, EntryKind::kPacket);
  if (batch_ == nullptr) {
    batch_ = pool_.take();
    if (batch_ == nullptr) return nullptr;
    if (path_ != nullptr) batch_->set_path(*path_);
  }
  room_ = batch_->reserve(size);
  return room_;
}

std::byte* Turn::reserve_in_ring(size_t size, EntryKind kind) {
  if (!has_ring_) ring_->mutex.lock();
  has_ring_ = true;
  // The peer sees the packets before a long one while its bytes are gathered.
  if (size > kShort) ring_->writer().publish();
  RingAddresses addresses;
  memcpy(addresses.source, path_->source, sizeof addresses.source);
  memcpy(addresses.destination, path_->destination, sizeof addresses.destination);
  room_ = ring_->writer().reserve(size, addresses, kind);
  if (room_ == nullptr) ring_->full.store(true, std::memory_order_relaxed);
  return room_;
}

// False if the peer would not be allowed to fetch the bytes.
bool Turn::describe(const roce::Reference& reference, RingReference& made) const {
  const Publication& publication = qp_.node->publication();
  if (qp_.published == 0 || !ring_->fetches_from(publication.nonce())) return false;
  made = {};
  made.owner = publication.nonce();
  made.length = static_cast<uint32_t>(reference.length);
  made.packets = reference.packets;
  uint64_t offset = reference.offset, left = reference.length;
  for (const roce::Segment& segment : reference.segments) {
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const uint64_t address = segment.address + offset;
    const auto length = static_cast<uint32_t>(std::min(segment.length - offset, left));
    if (made.source_count == RingReference::kMostSources ||
        !publication.shows(segment.lkey, reference.who.domain, address, length))
      return false;
    made.sources[made.source_count++] = {address, length, segment.lkey};
    left -= length;
    offset = 0;
    if (left == 0) return true;
  }
  return false;
}

std::byte* Turn::refer(const roce::Reference& reference, size_t headers) {
  RingReference made;
  if (ring_ == nullptr || reference.length < kLeastReferred || packets_ == kPacketsOfATurn) return nullptr;
  if (!describe(reference, made) || reserve_in_ring(kReferringPacket, EntryKind::kReference) == nullptr) return nullptr;
  made.headers = static_cast<uint32_t>(headers);
  memcpy(room_ + kReferenceOffset, &made, sizeof made);
  return room_;
}

void Turn::commit(const roce::AddressVector* to) {
  ++packets_;
  if (has_ring_) return ring_->writer().commit();
  if (path_ == nullptr) {
    Path path;
    // A datagram to an address that is gone is lost.
    if (to == nullptr || !qp_.context->resolve(*to, path)) return;
    path.source_qpn = qp_.qpn;
    // BTH: the destination queue pair is in bytes 5 to 7.
    path.destination_qpn = std::to_integer<uint32_t>(room_[5]) << 16 | std::to_integer<uint32_t>(room_[6]) << 8 |
                           std::to_integer<uint32_t>(room_[7]);
    batch_->set_path(path);
  }
  batch_->commit(to);
}

bool Turn::reaches_peer() const {
  return ring_ != nullptr && ring_->peer_memory().usable();
}

bool Turn::packets_are_quicker(const roce::Transfer& transfer) const {
  return qp_.pace.streams() && !ring_->peer_memory().copies_once(transfer.range.length);
}

roce::Placed Turn::place(const roce::Transfer& transfer, uint64_t& done) {
  if (!reaches_peer()) return roce::Placed::kNo;
  if (done == 0) {
    qp_.pace.note(qp_.send_cq->queue.takes());
    if (packets_are_quicker(transfer)) return roce::Placed::kNo;
  }
  const uint64_t most = kPlacedBytesOfATurn - std::min(placements_.bytes, kPlacedBytesOfATurn);
  // A peer that polls need not wait for the copy before it sees earlier packets.
  if (has_ring_) ring_->writer().publish();
  if (most == 0 || placements_.writes + placements_.reads == kPacketsOfATurn) return roce::Placed::kPart;
  const uint64_t before = done;
  const roce::Placed placed =
      soft::place(ring_->peer_memory(), qp_.context->memory, *path_, qp_.qpn, transfer, most, done);
  placements_.bytes += done - before;
  if (placed == roce::Placed::kWhole) ++(transfer.is_read ? placements_.reads : placements_.writes);
  return placed;
}

bool Turn::would_place(const roce::Transfer& transfer) {
  return reaches_peer() && !packets_are_quicker(transfer) &&
         soft::would_place(ring_->peer_memory(), *path_, qp_.qpn, transfer);
}

}  // namespace dapple::soft
