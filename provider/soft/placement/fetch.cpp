// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/fetch.hpp"

#include <algorithm>

#include "provider/keep_errno.hpp"

namespace dapple::soft {

bool FetchedBytes::copy(uint64_t offset, std::byte* to, size_t size) const {
  if (peer_ == nullptr || !peer_->usable() || peer_->nonce() != reference_.owner) return false;
  const provider::KeepErrno keep;
  const size_t wanted = size;
  bool is_whole = true;
  for (uint32_t i = 0; i < reference_.source_count && size > 0 && is_whole; i++) {
    const RingReference::Source& source = reference_.sources[i];
    if (offset >= source.length) {
      offset -= source.length;
      continue;
    }
    const size_t part = std::min<uint64_t>(source.length - offset, size);
    is_whole = copy_from(source, offset, to, part);
    to += part;
    size -= part;
    offset = 0;
  }
  if (!is_whole || size > 0) return false;
  counters_.fetches.add();
  counters_.fetched_bytes.add(wanted);
  return true;
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
