// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Physical addresses, which shadows have. A cache works on lines of memory, not of the address space, so mappings of
// the same memory must have one shadow. Private memory has its virtual address as physical address. Memory of a shared
// mapping has one that depends on the mapped object and the offset in it, beyond all virtual addresses.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <compare>
#include <map>
#include <vector>

namespace dapple::provider {

// Whole pages of the program's memory that are adjacent in physical addresses, too.
struct Piece {
  uintptr_t address;
  size_t length;
  uintptr_t physical;

  uintptr_t physical_end() const { return physical + length; }
  bool has_physical(uintptr_t at) const { return at - physical < length; }
};

// Confined: the caller locks.
class PhysicalAddresses {
 public:
  static constexpr uintptr_t kShared = uintptr_t{1} << 60;  // shared memory; no virtual address is there
  static constexpr uintptr_t kWindow = uintptr_t{1} << 40;  // the part of an object that has adjacent addresses
  static constexpr size_t kMaxWindows = size_t{1} << 20;

  // Cuts mapped pages into pieces, in the order of their addresses. 0, or ENOMEM after kMaxWindows.
  int cut(uintptr_t begin, uintptr_t end, std::vector<Piece>* pieces);

  // A number for the page of a shared object, for all processes alike; pages that are adjacent in a window have
  // adjacent numbers. Different pages have different numbers but for a chance of 1 in 2^35.
  uint64_t number_of(uintptr_t physical) const;

  static bool is_shared(uintptr_t physical) { return physical >= kShared; }

 private:
  struct Window {
    uint64_t device;
    uint64_t inode;
    uint64_t index;
    bool is_sysv;  // System V segments have their own numbers of inodes, on the device of other shared memory
    auto operator<=>(const Window&) const = default;  // NOLINT(modernize-use-nullptr): clang 14's own code
  };
  struct Mapping;

  bool physical_of(const Mapping& mapping, uintptr_t address, Piece* piece);

  std::map<Window, uintptr_t> windows_;
  std::vector<Window> by_number_;
};

}  // namespace dapple::provider
