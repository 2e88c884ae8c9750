// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A packet in a ring that has a reference to its bytes instead of them: the reader fetches them from the writer's
// memory, so they are copied once. The packet's headers are at its start, and the reference is at kReferenceOffset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "roce/packet/packet.hpp"

namespace dapple::soft {

struct RingReference {
  static constexpr uint32_t kMaxSources = 4;
  struct Source {
    uint64_t address;
    uint32_t length;
    uint32_t key;  // as the writer has published it
  };

  uint64_t owner;    // the nonce of the table that the writer has published
  uint32_t length;   // of all sources
  uint32_t packets;  // that it stands for
  uint32_t headers;  // bytes of the packet's headers
  uint32_t source_count;
  Source sources[kMaxSources];
};

inline constexpr size_t kReferenceOffset = 64;
inline constexpr size_t kReferringPacket = kReferenceOffset + sizeof(RingReference);
static_assert(kReferenceOffset >= roce::kMaxHeaderSize);

// The reference of a packet that its writer may still change. False if no writer of ours has made it.
inline bool take_reference(std::span<const std::byte> packet, RingReference& reference) {
  constexpr uint32_t kMaxPackets = 1 << 22;
  if (packet.size() != kReferringPacket) return false;
  memcpy(&reference, packet.data() + kReferenceOffset, sizeof reference);
  if (reference.headers < roce::kBthSize || reference.headers > roce::kMaxHeaderSize) return false;
  if (reference.source_count > RingReference::kMaxSources || reference.packets > kMaxPackets) return false;
  uint64_t length = 0;
  for (uint32_t i = 0; i < reference.source_count; i++) length += reference.sources[i].length;
  return length == reference.length;
}

}  // namespace dapple::soft
