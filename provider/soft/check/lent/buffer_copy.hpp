// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>

namespace dapple::soft::check {

// The bytes of a buffer at the post of its request, or those that have arrived for it.
class BufferCopy {
 public:
  // The bytes of all copies of this process. A request that would exceed the limit gets none.
  static inline std::atomic<size_t> all_bytes{0};
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  // put() fills it.
  explicit BufferCopy(size_t size)
      : size_(size), many_(size > sizeof few_ ? std::make_unique_for_overwrite<std::byte[]>(size) : nullptr) {
    all_bytes.fetch_add(size_);
  }
  ~BufferCopy() { all_bytes.fetch_sub(size_); }
  BufferCopy(const BufferCopy&) = delete;
  BufferCopy& operator=(const BufferCopy&) = delete;

  void put(size_t offset, const std::byte* memory, size_t size) {
    assert(has(offset, size));
    memcpy(bytes() + offset, memory, size);
  }

  void take(size_t offset, std::byte* memory, size_t size) const {
    assert(has(offset, size));
    memcpy(memory, bytes() + offset, size);
  }

  bool has(size_t offset, size_t size) const { return offset <= size_ && size <= size_ - offset; }
  // The place in the copy of the first of these bytes that differs from it, if any.
  std::optional<size_t> difference(size_t offset, const std::byte* memory, size_t size) const {
    assert(has(offset, size));
    if (memcmp(bytes() + offset, memory, size) == 0) return std::nullopt;
    const std::byte* const differs = std::mismatch(memory, memory + size, bytes() + offset).first;
    // Another thread may have changed it back meanwhile.
    if (differs == memory + size) return std::nullopt;
    return offset + static_cast<size_t>(differs - memory);
  }

 private:
  std::byte* bytes() { return many_ == nullptr ? few_ : many_.get(); }
  const std::byte* bytes() const { return many_ == nullptr ? few_ : many_.get(); }

  const size_t size_;
  const std::unique_ptr<std::byte[]> many_;  // null: they are in few_
  std::byte few_[32];
};

// Null: there is none.
using SharedCopy = std::shared_ptr<const BufferCopy>;

}  // namespace dapple::soft::check
