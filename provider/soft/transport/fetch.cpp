// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/fetch.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>

#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

using Piece = GuardedProcess::Piece;

// Right after the receive was taken from its queue.
uint64_t number_of_taken(ReceiveQueue& receives) {
  const uint64_t next = receives.next_number();
  assert(next > 0);
  return next - 1;
}

}  // namespace

bool FetchedBytes::copy(uint64_t offset, std::byte* to, size_t size) const {
  assert(offset + size <= reference_.length);
  if (peer_ == nullptr || !peer_->usable() || peer_->nonce() != reference_.owner) return false;
  const ErrnoGuard keep;
  const bool is_whole = ahead_ != nullptr && offset == 0 && size == reference_.length;
  const bool is_copied = is_whole && (is_there(to) || copy_with_next(to));
  if (!is_copied && !copy_parts(offset, to, size)) return false;
  counters_.fetches.add();
  counters_.fetched_bytes.add(size);
  return true;
}

bool FetchedBytes::is_there(const std::byte* to) const {
  const AheadOfItsPacket& message = ahead_->message;
  if (message.arrival != ahead_->arrival || message.qpn != ahead_->receiver.qpn || message.bytes != to) return false;
  // The sender could have changed the packet, and the program could have posted the receive anew.
  if (memcmp(&message.reference, &reference_, sizeof reference_) != 0) return false;
  if (message.receive != number_of_taken(ahead_->receives)) return false;
  counters_.fetched_ahead.add();
  return true;
}

// Needs two messages in one piece each, and a receive for the next one that has room for it in one piece, too.
bool FetchedBytes::copy_with_next(std::byte* to) const {
  class Fetch final : public MemoryTable::Borrower {
   public:
    Fetch(const FetchedBytes& bytes, std::byte* to, size_t next_size) : bytes_(bytes), to_(to), next_size_(next_size) {}
    bool use(std::byte* memory, size_t, size_t size) override {
      if (size != next_size_) return false;
      next_to = memory;
      return bytes_.copy_both(to_, next_to);
    }
    std::byte* next_to = nullptr;

   private:
    const FetchedBytes& bytes_;
    std::byte* const to_;
    const size_t next_size_;
  };
  const RingReference* next = ahead_->next;
  if (next == nullptr || next->owner != reference_.owner || next->length == 0) return false;
  if (reference_.source_count != 1 || next->source_count != 1) return false;
  const uint64_t both = uint64_t{reference_.length} + next->length;
  if (!peer_->copies_once(reference_.length) || both > peer_->most_at_once(both)) return false;
  roce::WholeReceiveRequest receive;
  if (!ahead_->receives.peek(receive) || receive.segment_count == 0 || receive.segments[0].length < next->length)
    return false;
  Fetch fetch(*this, to, next->length);
  if (ahead_->memory.lend(ahead_->receiver, {receive.segments, 1}, 0, next->length, true, fetch) != roce::Fault::kNone)
    return false;
  ahead_->message = {.arrival = ahead_->arrival + 1,
                     .receive = ahead_->receives.next_number(),
                     .qpn = ahead_->receiver.qpn,
                     .bytes = fetch.next_to,
                     .reference = *next};
  return true;
}

bool FetchedBytes::copy_both(std::byte* to, std::byte* next_to) const {
  const RingReference::Source& source = reference_.sources[0];
  const RingReference::Source& next = ahead_->next->sources[0];
  const PeerMemory::Grant grant(*peer_, sender_, {source.key, source.address, source.length});
  const PeerMemory::Grant next_grant(*peer_, sender_, {next.key, next.address, next.length});
  if (!grant || !next_grant) return false;
  const Piece pieces[] = {{source.address, to, source.length}, {next.address, next_to, next.length}};
  return peer_->read_together(pieces) && grant.queue_pair_lives();
}

bool FetchedBytes::copy_parts(uint64_t offset, std::byte* to, size_t size) const {
  bool is_whole = true;
  for (uint32_t i = 0; i < reference_.source_count && size > 0 && is_whole; i++) {
    const RingReference::Source& source = reference_.sources[i];
    if (offset >= source.length) {
      offset -= source.length;
      continue;
    }
    const size_t part = std::min<uint64_t>(source.length - offset, size);
    assert(0 < part && part <= size);
    is_whole = copy_from(source, offset, to, part);
    to += part;
    size -= part;
    offset = 0;
  }
  return is_whole && size == 0;
}

bool FetchedBytes::copy_from(const RingReference::Source& source, uint64_t offset, std::byte* to, size_t size) const {
  while (size > 0) {
    const size_t piece = std::min<size_t>(size, peer_->most_at_once(size));
    const uint64_t address = source.address + offset;
    PeerMemory::Grant grant(*peer_, sender_, {source.key, address, piece});
    // The peer does not wait for the end of the copy if its requests fail. Its program may have changed the bytes then.
    if (!grant || !grant.read(address, to, piece) || !grant.queue_pair_lives()) return false;
    offset += piece;
    to += piece;
    size -= piece;
  }
  return true;
}

}  // namespace dapple::soft
