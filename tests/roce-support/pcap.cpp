// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/pcap.hpp"

#include <initializer_list>

namespace dapple::roce::test {

namespace {

// pcap-savefile(5), with nanoseconds. Readers tell the byte order by the magic number.
constexpr uint32_t kMagic = 0xA1B23C4D;
constexpr uint32_t kVersion = 4U << 16 | 2;  // 2.4, two numbers of 16 bits in little-endian order
constexpr uint32_t kLongest = 1 << 17;
constexpr uint32_t kEthernet = 1;

}  // namespace

PcapFile::PcapFile(const std::string& path) : out_(path, std::ios::binary) {
  for (const uint32_t value : {kMagic, kVersion, 0U, 0U, kLongest, kEthernet}) word(value);
}

void PcapFile::write(uint64_t time_ns, std::span<const std::byte> frame) {
  word(static_cast<uint32_t>(time_ns / 1'000'000'000));
  word(static_cast<uint32_t>(time_ns % 1'000'000'000));
  word(static_cast<uint32_t>(frame.size()));
  word(static_cast<uint32_t>(frame.size()));
  out_.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
}

bool PcapFile::close() {
  out_.close();
  return out_.good();
}

void PcapFile::word(uint32_t value) {
  const char bytes[] = {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16),
                        static_cast<char>(value >> 24)};
  out_.write(bytes, sizeof bytes);
}

}  // namespace dapple::roce::test
