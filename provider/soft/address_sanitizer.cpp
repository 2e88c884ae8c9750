// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/address_sanitizer.hpp"

#include <dlfcn.h>

namespace dapple::soft {

const AddressSanitizer* AddressSanitizer::of_program() {
  static const AddressSanitizer* const found = []() -> const AddressSanitizer* {
    static AddressSanitizer made;
    made.region_is_poisoned_ =
        reinterpret_cast<void* (*)(void*, size_t)>(dlsym(RTLD_DEFAULT, "__asan_region_is_poisoned"));
    made.report_error_ =
        reinterpret_cast<void (*)(void*, void*, void*, void*, int, size_t)>(dlsym(RTLD_DEFAULT, "__asan_report_error"));
    return made.region_is_poisoned_ != nullptr && made.report_error_ != nullptr ? &made : nullptr;
  }();
  return found;
}

void AddressSanitizer::report(void* place, size_t size, bool is_write) const {
  void* frame = __builtin_frame_address(0);
  report_error_(__builtin_return_address(0), frame, frame, place, is_write ? 1 : 0, size);
}

}  // namespace dapple::soft
