// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Copies to and from a process by its number: one copy by the kernel, where the file of a process' memory takes two.
// The process' guard page keeps the copies from another program (guard_page.hpp).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/soft/placement/guard_page.hpp"

namespace dapple::soft {

// Any thread may copy.
class GuardedProcess {
 public:
  // The file of the process' memory copies fewer bytes more quickly: the guard page costs as much as some kilobytes.
  static constexpr size_t kMin = 8 * 1024;

  // `process`: its number in this process' PID namespace, or 0. The object stays unusable if there is no guard page, if
  // another program could have something at its address, or if the system does not let this process reach the other
  // one. Once, before the copies.
  void open(pid_t process, Guard guard);
  // False for ever after a copy that has not found the guard page.
  bool usable() const { return process_.load(std::memory_order_relaxed) != 0; }

  // False if not all was copied. `size` is not 0. The bytes of the last word (size_of_last_word()) become visible last.
  bool write(uint64_t address, const std::byte* from, size_t size);

  static constexpr size_t kMaxPieces = 2;
  struct Piece {
    uint64_t address;
    std::byte* to;
    size_t size;  // not 0
  };
  // Copies at most kMaxPieces pieces with one system call. False if not all was copied.
  bool read(std::span<const Piece> pieces);

 private:
  std::atomic<pid_t> process_{0};
  Guard guard_ = {};
};

}  // namespace dapple::soft
