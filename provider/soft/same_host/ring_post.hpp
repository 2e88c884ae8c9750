// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_SAME_HOST_RING_POST_HPP
#define DAPPLE_PROVIDER_SOFT_SAME_HOST_RING_POST_HPP

#include <cstddef>
#include <optional>

#include "provider/soft/same_host/links.hpp"
#include "roce/ports.hpp"

namespace dapple::soft {

// The sink of one packet for a process of this host (roce/at_once.hpp). The peer sees the packet at once. The sink has
// the ring's lock from reserve() to its end; call the ring's wake_reader() then.
class RingPost {
 public:
  RingPost(const Addresses& addresses, RingTo& ring) : addresses_(addresses), ring_(ring) {}

  static constexpr bool may_lose_packets() { return false; }
  bool take_along(const roce::Acknowledgement& acknowledgement) {
    acknowledgement_ = &acknowledgement;
    return true;
  }
  std::byte* reserve(size_t size) {
    lock_.emplace(ring_.mutex);
    std::byte* room = ring_.writer().reserve(size, addresses_, EntryKind::kPacket, acknowledgement_);
    if (room == nullptr) ring_.full.store(true, std::memory_order_relaxed);
    return room;
  }
  void commit(const roce::AddressVector*) { ring_.writer().publish_one(); }

 private:
  const Addresses& addresses_;
  RingTo& ring_;
  std::optional<BriefLock> lock_;
  const roce::Acknowledgement* acknowledgement_ = nullptr;
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_SAME_HOST_RING_POST_HPP
