// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The seam around libraries for GPUs: the memory of one region that the CPU cannot reach at its address. The library
// that has allocated it copies.
#pragma once

#include <cstddef>

namespace dapple::soft {

class GpuMemory {
 public:
  virtual ~GpuMemory() = default;

  // Copies bytes of the region to or from the process' own memory, before it returns. False if they cannot be reached
  // (any more). Any thread, several at a time. The calling thread needs no state of the library, keeps its own, and may
  // hold a queue pair's lock.
  virtual bool copy_out(const std::byte* from, std::byte* to, size_t size) = 0;
  virtual bool copy_in(std::byte* to, const std::byte* from, size_t size) = 0;
  // The reason of the last copy that has failed, such as "the program has freed it": a text that stays. Null if none
  // has.
  virtual const char* problem() const = 0;
};

}  // namespace dapple::soft
