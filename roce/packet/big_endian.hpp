// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Numbers in network byte order, at any address.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dapple::roce {

// Compilers make one load and one byte swap of these.
constexpr uint16_t load_be16(const std::byte* from) {
  return static_cast<uint16_t>(static_cast<unsigned>(from[0]) << 8 | static_cast<unsigned>(from[1]));
}

constexpr uint32_t load_be32(const std::byte* from) {
  return static_cast<uint32_t>(from[0]) << 24 | static_cast<uint32_t>(from[1]) << 16 |
         static_cast<uint32_t>(from[2]) << 8 | static_cast<uint32_t>(from[3]);
}

constexpr uint64_t load_be64(const std::byte* from) {
  return static_cast<uint64_t>(load_be32(from)) << 32 | load_be32(from + 4);
}

constexpr void store_be16(std::byte* to, uint16_t value) {
  to[0] = static_cast<std::byte>(value >> 8);
  to[1] = static_cast<std::byte>(value);
}

// One store: the compiler would make four of a loop over the bytes now and then.
inline void store_be32(std::byte* to, uint32_t value) {
  const uint32_t stored = std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
  std::memcpy(to, &stored, sizeof stored);
}

inline void store_be64(std::byte* to, uint64_t value) {
  store_be32(to, static_cast<uint32_t>(value >> 32));
  store_be32(to + 4, static_cast<uint32_t>(value));
}

}  // namespace dapple::roce
