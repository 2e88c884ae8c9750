// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/ring_turn.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>

#include "provider/soft/placement/place.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/fetch.hpp"
#include "provider/soft/transport/network_turn.hpp"

namespace dapple::soft {
namespace {

// Two cache lines. To gather the bytes of a longer packet takes longer than to publish the packets before it.
constexpr size_t kShort = 128;
constexpr uint64_t kPlacedBytesOfATurn = 1024 * 1024;

}  // namespace

RingTurn::RingTurn(Qp& qp, RingTo& ring, const Publication& publication)
    : PacketSink(false), qp_(qp), ring_(ring), publication_(publication) {
  assert_held(qp.mutex);
}

void RingTurn::end() {
  if (!is_locked_) return;
  assert(packets_ <= kPacketsOfATurn);
  is_locked_ = false;
  ring_.writer().publish();
  ring_.mutex.unlock();
  if (packets_ == 0) return;
  ring_.published(packets_, qp_.traffic->same_host_sent_packets);
  qp_.traffic->sent_bytes.add(bytes_);
}

inline std::byte* RingTurn::reserve(size_t size, EntryKind kind) {
  assert(size > 0);
  if (packets_ == kPacketsOfATurn) return nullptr;
  if (!is_locked_) ring_.mutex.lock();
  is_locked_ = true;
  // The peer sees the packets before a long one while its bytes are gathered.
  if (size > kShort) ring_.writer().publish();
  std::byte* room = ring_.writer().reserve(size, qp_.transport.path, kind);
  if (room == nullptr) ring_.full.store(true, std::memory_order_relaxed);
  reserved_ = size;
  return room;
}

std::byte* RingTurn::reserve(size_t size) {
  return reserve(size, EntryKind::kPacket);
}

void RingTurn::commit(const roce::AddressVector*) {
  // reserve() has locked the ring.
  assert(is_locked_ && packets_ < kPacketsOfATurn);
  ++packets_;
  bytes_ += reserved_;
  ring_.writer().commit();
}

// False if the peer would not be allowed to fetch the bytes.
bool RingTurn::describe(const roce::Reference& reference, RingReference& made) const {
  if (qp_.transport.published == 0 || !ring_.fetches_from(publication_.nonce())) return false;
  made = {};
  made.owner = publication_.nonce();
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
    if (made.source_count == RingReference::kMaxSources ||
        !publication_.shows(segment.lkey, reference.who.domain, address, length))
      return false;
    made.sources[made.source_count++] = {address, length, segment.lkey};
    left -= length;
    offset = 0;
    if (left == 0) return true;
  }
  return false;
}

std::byte* RingTurn::refer(const roce::Reference& reference, size_t headers) {
  RingReference made;
  if (reference.length < kMinReferred || !describe(reference, made)) return nullptr;
  std::byte* room = reserve(kReferringPacket, EntryKind::kReference);
  if (room == nullptr) return nullptr;
  made.headers = static_cast<uint32_t>(headers);
  reserved_ = headers + reference.length;
  memcpy(room + kReferenceOffset, &made, sizeof made);
  return room;
}

bool RingTurn::packets_are_quicker(const roce::Transfer& transfer) const {
  return qp_.transport.pace.streams() && !ring_.peer_memory().copies_once(transfer.range.length);
}

roce::Placed RingTurn::place(const roce::Transfer& transfer, uint64_t& done) {
  if (!reaches_peer()) return roce::Placed::kNo;
  if (done == 0) {
    qp_.transport.pace.note(qp_.send_cq->queue.taken());
    if (packets_are_quicker(transfer)) return roce::Placed::kNo;
  }
  const uint64_t most = kPlacedBytesOfATurn - std::min(placements_.bytes, kPlacedBytesOfATurn);
  // A peer that polls need not wait for the copy before it sees earlier packets.
  if (is_locked_) ring_.writer().publish();
  if (most == 0 || placements_.writes + placements_.reads == kPacketsOfATurn) return roce::Placed::kPart;
  const uint64_t before = done;
  const roce::Placed placed =
      soft::place(ring_.peer_memory(), qp_.context->memory, qp_.transport.path, qp_.qpn, transfer, most, done);
  assert(done >= before && done - before <= most);
  placements_.bytes += done - before;
  if (transfer.is_read) placements_.read_bytes += done - before;
  if (placed == roce::Placed::kWhole) ++(transfer.is_read ? placements_.reads : placements_.writes);
  return placed;
}

bool RingTurn::would_place(const roce::Transfer& transfer) {
  return reaches_peer() && !packets_are_quicker(transfer) &&
         soft::would_place(ring_.peer_memory(), qp_.transport.path, qp_.qpn, transfer);
}

}  // namespace dapple::soft
