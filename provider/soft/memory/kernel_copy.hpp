// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Copies between our own memory and memory that the program may unmap or protect at any moment. The kernel copies: it
// looks for each page and for the program's right to it, and holds the page meanwhile. Each copy is a system call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

enum class KernelCopy : uint8_t {
  kWhole,
  kMissing,    // a page is not there, or lacks the right. The bytes before it may have been copied
  kForbidden,  // by a filter of system calls: nothing has been copied
};

// `size` is not 0. The last bytes become visible last, as with copy_last_word_last(), but the kernel may copy them byte
// by byte.
KernelCopy copy_in_by_kernel(std::byte* to, const std::byte* from, size_t size);
// The same in any order, which is a little quicker.
KernelCopy copy_in_any_order(std::byte* to, const std::byte* from, size_t size);
KernelCopy copy_out_by_kernel(const std::byte* from, std::byte* to, size_t size);

// Memory of a mapped driver's file, such as a dma-buf, which the functions above do not reach. The kernel copies as for
// the program's own system calls. The driver may take the memory away, or its file may shrink.
class DriverBytes {
 public:
  // False if the memory has gone. Where a filter of system calls forbids it, the CPU copies, and gets SIGBUS then.
  bool copy_out(const std::byte* from, std::byte* to, size_t size) const;
  bool copy_in(std::byte* to, const std::byte* from, size_t size) const;
};

}  // namespace dapple::soft
