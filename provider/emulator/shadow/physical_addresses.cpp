// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow/physical_addresses.hpp"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <string>

namespace dapple::provider {
namespace {

// Closes a descriptor.
struct File {
  int fd;
  explicit File(const char* path) : fd(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

// False only if each page is anonymous memory of its own. The pages are in memory, because the caller has read them.
// Cheaper than the list of all mappings, which grows with each region.
bool may_be_shared(uintptr_t begin, uintptr_t end) {
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  constexpr uint64_t kFileOrShared = uint64_t{1} << 61;
  constexpr size_t kAtOnce = 1024;
  const File pagemap("/proc/self/pagemap");
  if (pagemap.fd < 0) return true;
  uint64_t entries[kAtOnce];
  for (uintptr_t at = begin; at < end; at += kAtOnce * page_size) {
    const size_t count = std::min(kAtOnce, (end - at) / page_size);
    const auto size = static_cast<ssize_t>(count * sizeof entries[0]);
    const auto offset = static_cast<off_t>(at / page_size * sizeof entries[0]);
    if (pread(pagemap.fd, entries, static_cast<size_t>(size), offset) != size) return true;
    for (size_t i = 0; i < count; ++i) {
      if ((entries[i] & (kPresent | kFileOrShared)) != kPresent) return true;
    }
  }
  return false;
}

bool read_all(const char* path, std::string* text) {
  const File file(path);
  char part[16384];
  ssize_t length = 0;
  while (file.fd >= 0 && (length = read(file.fd, part, sizeof part)) > 0)
    text->append(part, static_cast<size_t>(length));
  return file.fd >= 0 && length == 0;
}

}  // namespace

// A line of /proc/self/maps.
struct PhysicalAddresses::Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool is_shared = false;
  uint64_t offset = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  bool is_sysv = false;

  bool parse(const char* line) {
    char rights[5] = "";
    unsigned major = 0;
    unsigned minor = 0;
    int name = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin, &end, rights, &offset,
               &major, &minor, &inode, &name) != 7) {
      return false;
    }
    is_shared = rights[3] == 's';
    device = uint64_t{major} << 32 | minor;
    is_sysv = name > 0 && strncmp(line + name, "/SYSV", 5) == 0;
    return true;
  }
};

// The piece of a shared mapping that begins at an address in it. False if there are too many windows.
bool PhysicalAddresses::physical_of(const Mapping& mapping, uintptr_t address, Piece* piece) {
  assert(mapping.is_shared && mapping.begin <= address && address < mapping.end);
  const uint64_t offset = mapping.offset + (address - mapping.begin);
  const Window window = {mapping.device, mapping.inode, offset / kWindow, mapping.is_sysv};
  const auto [found, is_new] = windows_.try_emplace(window, by_number_.size());
  if (is_new) {
    if (by_number_.size() == kMaxWindows) {
      windows_.erase(found);
      return false;
    }
    by_number_.push_back(window);
  }
  const uint64_t within = offset % kWindow;
  const size_t length = std::min<uint64_t>(mapping.end - address, kWindow - within);
  assert(windows_.size() == by_number_.size() && length > 0);
  *piece = {address, length, kShared + found->second * kWindow + within};
  return true;
}

int PhysicalAddresses::cut(uintptr_t begin, uintptr_t end, std::vector<Piece>* pieces) {
  assert(begin < end);
  pieces->clear();
  const auto add = [&](const Piece& piece) {
    if (!pieces->empty()) {
      Piece& last = pieces->back();
      const bool begins_window = is_shared(piece.physical) && piece.physical % kWindow == 0;
      if (last.address + last.length == piece.address && last.physical_end() == piece.physical && !begins_window) {
        last.length += piece.length;
        return;
      }
    }
    pieces->push_back(piece);
  };
  const auto add_private = [&](uintptr_t from, uintptr_t to) {
    if (to > from) add({from, to - from, from});
  };
  std::string maps;
  if (!may_be_shared(begin, end) || !read_all("/proc/self/maps", &maps)) {
    add_private(begin, end);
    return 0;
  }
  uintptr_t at = begin;
  for (const char* line = maps.c_str(); line != nullptr && *line != '\0' && at < end;) {
    Mapping mapping;
    const bool is_good = mapping.parse(line);
    line = strchr(line, '\n');
    if (line != nullptr) ++line;
    if (!is_good || !mapping.is_shared || mapping.end <= at || mapping.begin >= end) continue;
    if (mapping.begin > at) {
      add_private(at, mapping.begin);
      at = mapping.begin;
    }
    while (at < std::min(end, mapping.end)) {
      Piece piece;
      if (!physical_of(mapping, at, &piece)) return ENOMEM;
      piece.length = std::min(piece.length, end - at);
      add(piece);
      at += piece.length;
    }
  }
  add_private(at, end);
  assert(!pieces->empty() && pieces->front().address == begin);
  assert(pieces->back().address + pieces->back().length == end);
  return 0;
}

uint64_t PhysicalAddresses::number_of(uintptr_t physical) const {
  constexpr int kPageBits = 12;
  constexpr int kBitsInWindow = 28;
  static_assert(kWindow == uintptr_t{1} << (kPageBits + kBitsInWindow));
  assert(is_shared(physical) && (physical - kShared) / kWindow < by_number_.size());
  const Window& window = by_number_[(physical - kShared) / kWindow];
  uint64_t hash = window.is_sysv;
  for (const uint64_t part : {window.device, window.inode, window.index}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return (hash >> 29) << kBitsInWindow | (physical % kWindow >> kPageBits);
}

}  // namespace dapple::provider
