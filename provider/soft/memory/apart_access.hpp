// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For memory_access.cpp alone: an access to a region of another kind than kPlain, or to a window on one. It tells the
// exporter of a dma-buf when the access begins and ends. A GPU's memory has no address for it: is_allowed() alone
// serves such a region. Copies of on-demand memory go the same way (on_demand_bytes.hpp). For an atomic, which only the
// CPU can make, the access brings the memory in.
#pragma once

#include "provider/soft/memory/memory_table.hpp"

namespace dapple::soft {

class MemoryTable::ApartAccess {
 public:
  enum class By : uint8_t { kOwner, kPeer };

  // By the entry's domain, rights and bounds, without a look at the memory.
  static bool is_allowed(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length, uint32_t access,
                         By by);

  ApartAccess(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length, uint32_t access, By by);
  ~ApartAccess();
  ApartAccess(const ApartAccess&) = delete;
  ApartAccess& operator=(const ApartAccess&) = delete;

  // False if the access is refused.
  explicit operator bool() const { return memory_ != nullptr; }
  std::byte* memory() const { return memory_; }
  // The bytes from memory() on that may be used. Fewer than the access has: the next bytes are the same ones again.
  size_t most_at_once() const { return most_; }

 private:
  void tell_exporter(uint64_t end_flag) const;

  std::byte* memory_ = nullptr;
  size_t most_ = 0;
  int dmabuf_ = -1;
  bool is_write_ = false;
};

}  // namespace dapple::soft
