// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/memory_sanitizer.hpp"

#include "provider/soft/sanitizers/program_function.hpp"

namespace dapple::soft {

Sanitizer* MemorySanitizer::of_program() {
  static MemorySanitizer made;
  const bool there = find_in_program("__msan_test_shadow", made.test_shadow_) &&
                     find_in_program("__msan_check_mem_is_initialized", made.check_mem_is_initialized_) &&
                     find_in_program("__msan_unpoison", made.unpoison_) &&
                     find_in_program("__msan_scoped_disable_interceptor_checks", made.disable_interceptor_checks_) &&
                     find_in_program("__msan_scoped_enable_interceptor_checks", made.enable_interceptor_checks_);
  return there ? &made : nullptr;
}

void MemorySanitizer::before(const DeviceAccess& access, const void* memory, size_t size) {
  if (access.kind == DeviceAccess::Kind::kWrite || test_shadow_(memory, size) < 0) return;
  announce(access, memory, size);
  check_mem_is_initialized_(memory, size);
}

}  // namespace dapple::soft
