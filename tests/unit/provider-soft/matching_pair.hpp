// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A connection whose end b matches tags: the ports of its queue pair are those of the endpoint, with the layers of tag
// matching between.
#pragma once

#include <infiniband/tm_types.h>
#include <string.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "provider/soft/tag_matching/tag_events.hpp"
#include "provider/soft/tag_matching/tag_memory.hpp"
#include "provider/soft/tag_matching/tag_queue_pair.hpp"
#include "roce/packet/big_endian.hpp"
#include "tests/unit/roce/pair.hpp"

namespace dapple::soft::test {

inline constexpr uint64_t kPlace = 60000;  // of entries, in end b's memory
inline constexpr uint64_t kSource = 1024;  // of a rendezvous, in end a's memory
inline constexpr std::byte kOld{0xEE};     // in all of end b's memory

struct MatchingPair : roce::test::Pair {
  static constexpr uint32_t kKey = roce::test::kKey;

  explicit MatchingPair(bool reads = true, bool refers = false) {
    if (list.initialize(kMaxTags) != 0 || queue.initialize(64, 1) != 0) std::abort();
    const roce::QpConfig config = {.qpn = 0x22,
                                   .send_depth = kMaxRendezvous * kRequestsOfRendezvous,
                                   .max_send_segments = kMaxTagSegments,
                                   .max_inline = kRendezvousHeaderSize,
                                   .max_receive_segments = kMaxTagSegments + 1,
                                   .shared_receives = true,
                                   .datagram_mtu = roce::test::kMtu};
    roce::CompletionSink& sent = reads ? static_cast<roce::CompletionSink&>(rendezvous) : b;
    std::unique_ptr<roce::QueuePair> engine = roce::QueuePair::create(config, memory, sent, receives, receives, events);
    b.qp = std::make_unique<TagQueuePair>(std::move(engine), receives, rendezvous, reads, uint64_t{1} << 31);
    a.refers = refers;
    if (!b.connect(0x11)) std::abort();
    memset(b.bytes.data(), static_cast<int>(kOld), b.bytes.size());
  }
  ~MatchingPair() { b.qp.reset(); }

  // An entry of two pieces in a row. Returns its handle.
  uint32_t add(uint64_t id, uint64_t tag, uint32_t length, uint32_t key = kKey, uint64_t mask = UINT64_MAX) {
    const std::lock_guard lock(list.mutex);
    const uint64_t at = roce::test::kBase + kPlace;
    const roce::Segment segments[] = {{at, length / 2, key}, {at + length / 2, length - length / 2, key}};
    return list.add({.id = id, .tag = tag, .mask = mask, .segments = {segments, 1u + (length > 0)}});
  }
  bool remove(uint32_t handle) {
    const std::lock_guard lock(list.mutex);
    return list.remove(handle);
  }
  uint32_t used() {
    const std::lock_guard lock(list.mutex);
    return list.count();
  }
  // False if the queue is full.
  bool receive(uint64_t id, uint32_t length) {
    const roce::Segment segment = {roce::test::kBase, length, kKey};
    return queue.post(id, {&segment, 1}) == 0;
  }
  void write_header(uint8_t operation, uint64_t tag) {
    std::byte* const at = a.bytes.data();
    memset(at, 0, kTagHeaderSize);
    at[0] = std::byte{operation};
    roce::store_be64(at + 8, tag);
  }
  void write_rendezvous(uint64_t tag, uint32_t length, uint32_t key = kKey) {
    write_header(IBV_TMH_RNDV, tag);
    std::byte* const at = a.bytes.data() + kTagHeaderSize;
    roce::store_be64(at, roce::test::kBase + kSource);
    roce::store_be32(at + 8, key);
    roce::store_be32(at + 12, length);
  }
  // False if end a has no room for it.
  bool send(uint32_t length) {
    return a.qp->post_send(a.request(roce::SendOpcode::kSend, length)) == roce::PostError::kNone;
  }
  const std::vector<roce::Completion>& got() const { return b.receive_completions.all; }

  TagList list;
  ReceiveQueue queue;
  Rendezvous rendezvous{list, b.receive_completions, 0x22};
  TagReceives receives{list, queue, rendezvous, b.receive_completions, 0x22};
  TagMemory memory{b, receives};
  TagEvents events{b, receives, rendezvous, true};
};

}  // namespace dapple::soft::test
