// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace dapple::soft::check {

// The bytes of a buffer at the post of its request.
class BufferCopy {
 public:
  // The bytes of all copies of this process. A request that would exceed the limit gets none.
  static inline std::atomic<size_t> all_bytes{0};
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  explicit BufferCopy(std::vector<std::byte> copied) : bytes(std::move(copied)) { all_bytes.fetch_add(bytes.size()); }
  ~BufferCopy() { all_bytes.fetch_sub(bytes.size()); }
  BufferCopy(const BufferCopy&) = delete;
  BufferCopy& operator=(const BufferCopy&) = delete;

  const std::vector<std::byte> bytes;
};

// Null: there is none.
using SharedCopy = std::shared_ptr<const BufferCopy>;

}  // namespace dapple::soft::check
