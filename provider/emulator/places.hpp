// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The places of shadows. A cache works on lines of memory, not of the address space, so mappings of the same memory
// must have one shadow. Private memory has its address as its place. Memory of a shared mapping has a place that
// depends on the mapped object and the offset in it, beyond all addresses.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <compare>
#include <map>
#include <vector>

namespace dapple::provider {

// Whole pages of the program's memory that are adjacent in their places, too.
struct Piece {
  uintptr_t address;
  size_t length;
  uintptr_t place;

  uintptr_t end_of_place() const { return place + length; }
  bool has_place(uintptr_t at) const { return at - place < length; }
};

// Confined: the caller locks.
class Places {
 public:
  static constexpr uintptr_t kShared = uintptr_t{1} << 60;  // all places of shared memory, and no address
  static constexpr uintptr_t kWindow = uintptr_t{1} << 40;  // the part of an object that has adjacent places
  static constexpr size_t kMaxWindows = size_t{1} << 20;

  // Cuts mapped pages into pieces, in the order of their addresses. 0, or ENOMEM after kMaxWindows.
  int cut(uintptr_t begin, uintptr_t end, std::vector<Piece>* pieces);

  // A number for the page of a shared object, for all processes alike; pages that are adjacent in a window have
  // adjacent numbers. Different pages have different numbers but for a chance of 1 in 2^35.
  uint64_t number_of(uintptr_t place) const;

  static bool is_shared(uintptr_t place) { return place >= kShared; }

 private:
  struct Window {
    uint64_t device;
    uint64_t inode;
    uint64_t index;
    bool is_sysv;  // System V segments have their own numbers of inodes, on the device of other shared memory
    auto operator<=>(const Window&) const = default;
  };
  struct Mapping;

  bool place_of(const Mapping& mapping, uintptr_t address, Piece* piece);

  std::map<Window, uintptr_t> windows_;
  std::vector<Window> by_number_;
};

}  // namespace dapple::provider
