// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/address_sanitizer.hpp"

#include "provider/soft/sanitizers/program_function.hpp"

namespace dapple::soft {

Sanitizer* AddressSanitizer::of_program() {
  static AddressSanitizer made;
  const bool there = find_in_program("__asan_region_is_poisoned", made.region_is_poisoned_) &&
                     find_in_program("__asan_report_error", made.report_error_);
  return there ? &made : nullptr;
}

const void* AddressSanitizer::forbidden(const void* memory, size_t size) {
  return region_is_poisoned_(const_cast<void*>(memory), size);
}

void AddressSanitizer::before(const DeviceAccess& access, const void* memory, size_t size) {
  void* place = region_is_poisoned_(const_cast<void*>(memory), size);
  if (place == nullptr) return;
  announce(access, memory, size);
  void* frame = __builtin_frame_address(0);
  const size_t good = static_cast<size_t>(static_cast<const std::byte*>(place) - static_cast<const std::byte*>(memory));
  const int is_write = access.kind == DeviceAccess::Kind::kRead ? 0 : 1;
  report_error_(__builtin_return_address(0), frame, frame, place, is_write, size - good);
}

}  // namespace dapple::soft
