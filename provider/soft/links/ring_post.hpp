// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cassert>
#include <cstddef>

#include "provider/soft/links/links.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// The sink of the packets of one post for a process of this host (roce/at_once.hpp). The peer sees a packet alone at
// once, and packets of a list at the latest when the sink ends. The sink has the ring's lock; call the ring's
// published() after its end.
class RingPost {
 public:
  RingPost(const Addresses& addresses, RingTo& ring, bool is_alone)
      : addresses_(addresses), ring_(ring), is_alone_(is_alone), lock_(ring.mutex) {}
  ~RingPost() {
    if (!is_alone_) ring_.writer().publish();
  }
  RingPost(const RingPost&) = delete;
  RingPost& operator=(const RingPost&) = delete;

  static constexpr bool may_lose_packets() { return false; }
  bool take_along(const roce::Acknowledgement& acknowledgement) {
    taken_ = acknowledgement;
    acknowledgement_ = &taken_;
    return true;
  }
  std::byte* reserve(size_t size) {
    std::byte* room = ring_.writer().reserve(size, addresses_, EntryKind::kPacket, acknowledgement_);
    if (room == nullptr) ring_.full.store(true, std::memory_order_relaxed);
    reserved_ = size;
    return room;
  }
  void commit([[maybe_unused]] const roce::AddressVector* to) {
    assert(to == nullptr);
    bytes_ += reserved_;
    acknowledgement_ = nullptr;
    if (is_alone_) {
      ring_.writer().publish_one();
    } else {
      ring_.writer().commit();
    }
  }
  // Of the committed packets.
  uint64_t bytes() const { return bytes_; }

 private:
  const Addresses& addresses_;
  RingTo& ring_;
  const bool is_alone_;
  const BiasedLock lock_;
  size_t reserved_ = 0;
  uint64_t bytes_ = 0;
  roce::Acknowledgement taken_;
  const roce::Acknowledgement* acknowledgement_ = nullptr;  // of the next packet: null or &taken_
};

}  // namespace dapple::soft
