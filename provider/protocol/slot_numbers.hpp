// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The slots of a network namespace, and how they share the 24 bits of queue pair numbers.
//
// The first slots are large: the upper 8 bits of a number are the slot, and 65,536 numbers lead there. The numbers with
// the top bit belong to small slots of 8,192 numbers. There the upper 8 bits are the slot's lower bits, and the 3 bits
// below them count: 128 to 255 are the slots with 0 in these bits, 256 to 383 those with 1, and so on. So the first 256
// slots differ in the upper 8 bits. That is for peers of older releases, which send from one port for each value of
// these bits.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace dapple::soft {

inline constexpr uint32_t kLargeSlots = 128;
inline constexpr uint32_t kLargeSlotBits = 16;
inline constexpr uint32_t kSmallSlotBits = 13;
// Slot 0 is dappled's own. One more slot would have QPN 0xFFFFFF, which is for multicast, and is never handed out.
inline constexpr uint32_t kMaxSlots = kLargeSlots + (1 << 10) - 1;

// The slot that a queue pair number leads to; kMaxSlots and more belong to nobody.
constexpr uint32_t slot_of(uint32_t qpn) {
  const uint32_t upper = qpn >> kLargeSlotBits;
  return upper < kLargeSlots ? upper : upper + (qpn >> kSmallSlotBits & 7) * kLargeSlots;
}

// The same for the destination of a packet, which begins with its BTH.
inline uint32_t slot_of_packet(const std::byte* packet) {
  const auto upper = static_cast<uint32_t>(packet[5]);
  return upper < kLargeSlots ? upper : upper + (static_cast<uint32_t>(packet[6]) >> 5) * kLargeSlots;
}

constexpr uint32_t first_qpn(uint32_t slot) {
  assert(slot <= kMaxSlots);
  if (slot < kLargeSlots) return slot << kLargeSlotBits;
  const uint32_t upper = kLargeSlots + slot % kLargeSlots;
  return upper << kLargeSlotBits | (slot / kLargeSlots - 1) << kSmallSlotBits;
}

constexpr uint32_t qpns_of(uint32_t slot) {
  return uint32_t{1} << (slot < kLargeSlots ? kLargeSlotBits : kSmallSlotBits);
}

static_assert(slot_of(0xFFFFFF) == kMaxSlots && kMaxSlots - 1 >= 1024);

}  // namespace dapple::soft
