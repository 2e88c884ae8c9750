// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/place.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>

namespace dapple::soft {
namespace {

// Copies local pieces to or from the peer's memory at `address`.
class Copy final : public MemoryTable::Borrower {
 public:
  Copy(PeerMemory::Grant& grant, uint64_t address, bool is_read)
      : grant_(grant), address_(address), is_read_(is_read) {}
  bool use(std::byte* memory, size_t done, size_t size) override {
    return is_read_ ? grant_.read(address_ + done, memory, size) : grant_.write(address_ + done, memory, size);
  }

 private:
  PeerMemory::Grant& grant_;
  const uint64_t address_;
  const bool is_read_;
};

bool copy_piece(PeerMemory::Grant& grant, MemoryTable& memory, const roce::Transfer& transfer, uint64_t done,
                size_t size) {
  const uint64_t address = transfer.range.address + done;
  if (transfer.inline_bytes != nullptr) return grant.write(address, transfer.inline_bytes + done, size);
  Copy copy(grant, address, transfer.is_read);
  return memory.lend(transfer.who, transfer.segments, done, size, transfer.is_read, copy) == roce::Fault::kNone;
}

QpDescription target_of(const roce::Transfer& transfer, const Path& path, uint32_t qpn) {
  return counterpart(path, qpn, transfer.is_read ? roce::kRemoteRead : roce::kRemoteWrite);
}

}  // namespace

QpDescription counterpart(const Path& path, uint32_t qpn, uint32_t access) {
  QpDescription wanted;
  wanted.qpn = path.destination_qpn;
  wanted.peer_qpn = qpn;
  wanted.access = access;
  memcpy(wanted.own_address, path.destination, sizeof wanted.own_address);
  memcpy(wanted.peer_address, path.source, sizeof wanted.peer_address);
  return wanted;
}

roce::Placed place(PeerMemory& peer, MemoryTable& memory, const Path& path, uint32_t qpn,
                   const roce::Transfer& transfer, uint64_t most, uint64_t& done) {
  const int error = errno;
  const QpDescription wanted = target_of(transfer, path, qpn);
  const uint64_t end = std::min(transfer.range.length, done + most);
  while (done < end) {
    const uint64_t size = std::min(end - done, peer.most_at_once(end - done));
    PeerMemory::Grant grant(peer, wanted, transfer.range);
    if (!grant || !copy_piece(grant, memory, transfer, done, size)) {
      errno = error;
      return roce::Placed::kNo;
    }
    done += size;
  }
  return done == transfer.range.length ? roce::Placed::kWhole : roce::Placed::kPart;
}

bool would_place(PeerMemory& peer, const Path& path, uint32_t qpn, const roce::Transfer& transfer) {
  const PeerMemory::Grant grant(peer, target_of(transfer, path, qpn), transfer.range);
  return static_cast<bool>(grant);
}

}  // namespace dapple::soft
