// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of shared regions, as the kernel reports it, and the cookies of this process for such memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "udapl/core/error.hpp"

namespace dapple::udapl {

// Part of an object that mappings share. Two parts are the same memory if they compare equal.
struct SharedMapping {
  uint64_t device;  // major << 32 | minor
  uint64_t inode;
  uint64_t offset;  // bytes
  uint64_t length;  // bytes
  friend bool operator==(const SharedMapping&, const SharedMapping&) = default;
};

// Looks [address, address + length) up in the text of /proc/PID/maps. Empty unless the whole range is a shared mapping
// of one object without a gap. length > 0, and the range does not wrap.
std::optional<SharedMapping> find_shared_mapping(std::string_view maps, uint64_t address, uint64_t length);

using SharedCookie = std::array<char, 40>;

// The cookies of this process's shared regions. Guarded by the control mutex.
class SharedCookies {
 public:
  static SharedCookies& instance();

  // INVALID_STATE when the cookie already names other memory. Throws std::bad_alloc. Each success needs a release().
  Result<> acquire(const SharedCookie& cookie, const SharedMapping& mapping);
  void release(const SharedCookie& cookie);

 private:
  struct Entry {
    SharedMapping mapping;
    uint32_t regions;
  };
  std::map<SharedCookie, Entry> entries_;
};

// Holds a cookie for the life of one region.
class SharedCookieHold {
 public:
  SharedCookieHold() = default;
  // Reads /proc/self/maps. INVALID_STATE when the platform does not share this memory.
  static Result<SharedCookieHold> take(const SharedCookie& cookie, uint64_t address, uint64_t length);
  ~SharedCookieHold();
  SharedCookieHold(SharedCookieHold&& other) noexcept;
  SharedCookieHold& operator=(SharedCookieHold&&) = delete;

  const std::optional<SharedCookie>& cookie() const { return cookie_; }

 private:
  std::optional<SharedCookie> cookie_;
};

}  // namespace dapple::udapl
