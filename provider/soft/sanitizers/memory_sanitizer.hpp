// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

// MemorySanitizer of clang. It sees no store of code that was built without it, such as the plug-in.
class MemorySanitizer final : public Sanitizer {
 public:
  // Null if the program has none.
  static Sanitizer* of_program();

  void before(const DeviceAccess& access, const void* memory, size_t size) override;
  void stored(const void* memory, size_t size) override { unpoison_(memory, size); }
  // MemorySanitizer checks the arguments of system calls. The plug-in's arguments look undefined to it.
  void enter_plugin() override { disable_interceptor_checks_(); }
  void leave_plugin() override { enable_interceptor_checks_(); }

 private:
  ssize_t (*test_shadow_)(const volatile void* begin, size_t size) = nullptr;
  void (*check_mem_is_initialized_)(const volatile void* begin, size_t size) = nullptr;
  void (*unpoison_)(const volatile void* begin, size_t size) = nullptr;
  void (*disable_interceptor_checks_)() = nullptr;
  void (*enable_interceptor_checks_)() = nullptr;
};

}  // namespace dapple::soft
