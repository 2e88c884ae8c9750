// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The descriptor of a region for a peer: the 21 bytes of librpma 1.x, and one byte of ours, which older peers ignore.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "rpma/common/native.hpp"

namespace dapple::rpma {

struct Descriptor {
  uint64_t address = 0;
  uint64_t size = 0;  // bytes
  uint32_t rkey = 0;
  uint8_t usage = 0;   // RPMA_MR_USAGE_*
  uint8_t native = 0;  // native::k*: the operations that the region's owner does natively
};

// Little-endian: u64 address, u64 size, u32 rkey, u8 usage; then u8 native.
inline constexpr size_t kOldDescriptorSize = 21;
inline constexpr size_t kDescriptorSize = 22;

// The upper half of the last byte. It distinguishes this byte from a byte after a descriptor of 21 bytes in a program's
// message.
inline constexpr uint8_t kNativeMark = 0xd0;
inline constexpr uint8_t kNativeMarkMask = 0xf0;
inline constexpr uint8_t kNativeKnown = native::kAtomicWrite | native::kFlushAny;

inline void put_little(uint8_t* out, uint64_t value, size_t bytes) noexcept {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
}

inline uint64_t get_little(const uint8_t* in, size_t bytes) noexcept {
  uint64_t value = 0;
  for (size_t i = bytes; i > 0; --i) value = value << 8 | in[i - 1];
  return value;
}

// out: kDescriptorSize bytes.
inline void encode(const Descriptor& region, uint8_t* out) noexcept {
  put_little(out, region.address, 8);
  put_little(out + 8, region.size, 8);
  put_little(out + 16, region.rkey, 4);
  out[20] = region.usage;
  out[21] = static_cast<uint8_t>(kNativeMark | (region.native & kNativeKnown));
}

// Empty for fewer bytes than kOldDescriptorSize. The values come from the sender and are unchecked.
inline std::optional<Descriptor> decode(const void* bytes, size_t size) noexcept {
  if (size < kOldDescriptorSize) return std::nullopt;
  const auto* in = static_cast<const uint8_t*>(bytes);
  Descriptor region;
  region.address = get_little(in, 8);
  region.size = get_little(in + 8, 8);
  region.rkey = static_cast<uint32_t>(get_little(in + 16, 4));
  region.usage = in[20];
  if (size >= kDescriptorSize && (in[21] & kNativeMarkMask) == kNativeMark) region.native = in[21] & kNativeKnown;
  return region;
}

// True if a region lies within the address space.
inline bool in_address_space(const Descriptor& region) noexcept {
  return region.size == 0 || region.address <= UINT64_MAX - (region.size - 1);
}

}  // namespace dapple::rpma
