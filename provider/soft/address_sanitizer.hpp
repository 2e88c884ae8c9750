// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_ADDRESS_SANITIZER_HPP
#define DAPPLE_PROVIDER_SOFT_ADDRESS_SANITIZER_HPP

#include <cstddef>

namespace dapple::soft {

// The AddressSanitizer that the program was built with, of gcc or clang. It is looked for at run time, so the device
// needs none itself.
class AddressSanitizer {
 public:
  // Null if the program has none, or one whose functions cannot be found (gcc's -static-libasan without -rdynamic).
  static const AddressSanitizer* of_program();

  // The first byte in the range that the program may not use now, or null.
  void* poisoned(const void* memory, size_t size) const { return region_is_poisoned_(const_cast<void*>(memory), size); }
  // Prints the sanitizer's report about the place. Returns only if the program's options let it go on.
  void report(void* place, size_t size, bool is_write) const;

 private:
  void* (*region_is_poisoned_)(void* begin, size_t size) = nullptr;
  void (*report_error_)(void* pc, void* bp, void* sp, void* place, int is_write, size_t size) = nullptr;
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_ADDRESS_SANITIZER_HPP
