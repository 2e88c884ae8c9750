// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For memory_access.cpp and apart_access.cpp alone: the accesses to memory of an on-demand region. The program may
// unmap or protect the memory during an access, which then fails.
//
// Where a filter of system calls forbids kernel_copy.hpp, and for atomics, the CPU touches the memory after a look at
// it. A program that unmaps it in between crashes.
#pragma once

#include <cstddef>

#include "provider/soft/memory/on_demand_pages.hpp"

namespace dapple::soft {

class OnDemandBytes {
 public:
  // `pages`: of the region; null if they are not counted.
  explicit OnDemandBytes(OnDemandPages* pages) : pages_(pages) {}

  // Copies between the region and our own memory. False if a page is missing, or lacks the right. `size` is not 0.
  bool copy_out(const std::byte* from, std::byte* to, size_t size) const;
  bool copy_in(std::byte* to, const std::byte* from, size_t size) const;
  // Brings all pages in, for somebody who touches them at once. False as above.
  bool bring_in(const std::byte* memory, size_t size, bool write) const;

 private:
  bool noted(bool is_there, const std::byte* memory, size_t size, bool write) const;

  OnDemandPages* const pages_;
};

}  // namespace dapple::soft
