// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory for the parts of a send queue, from whoever makes the queue pair.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::roce {

class SendMemory {
 public:
  enum class Part : uint8_t { kRequests, kSegments };
  static constexpr size_t kAlignment = 64;

  // `size` bytes, at least one, aligned to kAlignment. Null: there is no memory. Each part is taken once at most.
  virtual void* take(Part part, size_t size) = 0;
  // The part is not used any more.
  virtual void give(Part part, void* memory) = 0;

 protected:
  ~SendMemory() = default;
};

}  // namespace dapple::roce
