// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Whether the memory is there that the device is about to use: the program may have unmapped it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dapple::soft::check {

// A look costs system calls. Only the program itself can take private memory away, so a thread remembers such mappings
// until forget(), and those that are not the heap's for some milliseconds: nobody hears of what the C library unmaps by
// itself. It looks each time at memory that files or other processes have.
class MappedMemory {
 public:
  // True if all pages are there and have the right. Any thread.
  bool has(const std::byte* memory, size_t size, bool write);
  // The same, and no sanitizer of the program forbids the check to use them: AddressSanitizer would end the program.
  bool is_usable(const std::byte* memory, size_t size, bool write);

  // The same for writing, and the memory is known to be private, with the rights to read and to write alone. False
  // until remember().
  bool is_plain(const std::byte* memory, size_t size);

  // From now on somebody calls forget() each time, and has() remembers.
  void remember() { remembers_.store(true, std::memory_order_relaxed); }
  // The program changes its mappings.
  void forget() { changes_.fetch_add(1); }

 private:
  std::atomic<bool> remembers_{false};
  std::atomic<uint64_t> changes_{1};
};

}  // namespace dapple::soft::check
