// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

// AddressSanitizer of gcc or clang.
class AddressSanitizer final : public Sanitizer {
 public:
  // Null if the program has none, or one whose functions cannot be found (gcc's -static-libasan without -rdynamic).
  static Sanitizer* of_program();

  void before(const DeviceAccess& access, const void* memory, size_t size) override;
  const void* forbidden(const void* memory, size_t size) override;
  bool watch_heap(void (*freed)(const void* block, size_t size)) override;
  void enter_plugin() override;
  void leave_plugin() override;

 private:
  void* (*region_is_poisoned_)(void* begin, size_t size) = nullptr;
  void (*report_error_)(void* pc, void* bp, void* sp, void* place, int is_write, size_t size) = nullptr;
};

}  // namespace dapple::soft
