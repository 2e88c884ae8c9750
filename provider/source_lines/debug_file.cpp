// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/source_lines/debug_file.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

namespace dapple::source_lines {
namespace {

// The CRC-32 of Ethernet, as objcopy --add-gnu-debuglink computes it.
constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; bit++) value = (value & 1) != 0 ? value >> 1 ^ 0xEDB88320 : value >> 1;
    table[i] = value;
  }
  return table;
}();

bool has_crc(int fd, uint32_t wanted) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0) return false;
  const auto size = static_cast<size_t>(status.st_size);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return false;
  uint32_t crc = ~uint32_t{0};
  const auto* bytes = static_cast<const unsigned char*>(memory);
  for (size_t i = 0; i < size; i++) crc = kTable[(crc ^ bytes[i]) & 0xFF] ^ crc >> 8;
  munmap(memory, size);
  return ~crc == wanted;
}

}  // namespace

int open_linked_file(const char* file, const char* link, uint32_t crc, char** path) {
  const std::string own = file;
  const std::string folder = own.substr(0, own.rfind('/') + 1);
  for (const std::string& place : {folder, folder + ".debug/", "/usr/lib/debug" + folder}) {
    const std::string candidate = place + link;
    const int fd = open(candidate.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) continue;
    if (has_crc(fd, crc) && (*path = strdup(candidate.c_str())) != nullptr) return fd;
    close(fd);
  }
  return -1;
}

}  // namespace dapple::source_lines
