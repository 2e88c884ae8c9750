// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/crc32.hpp"

#include <array>

namespace dapple::roce::test {

namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[n][b]: byte b with n bytes of zero behind it.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (auto& table : tables) {
      for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
      table[byte] = crc;
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint32_t word(const std::byte* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

}  // namespace

uint32_t crc32(uint32_t seed, const std::byte* bytes, size_t size) {
  uint32_t crc = seed;
  for (; size >= 8; bytes += 8, size -= 8) {
    const uint32_t low = crc ^ word(bytes);
    const uint32_t high = word(bytes + 4);
    crc = 0;
    for (unsigned i = 0; i < 4; ++i) {
      crc ^= kTables[7 - i][low >> (8 * i) & 0xFF];
      crc ^= kTables[3 - i][high >> (8 * i) & 0xFF];
    }
  }
  for (; size > 0; ++bytes, --size) crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<uint32_t>(*bytes)) & 0xFF];
  return crc;
}

}  // namespace dapple::roce::test
