// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/address_sanitizer.hpp"

#include <cassert>

#include "provider/soft/sanitizers/program_function.hpp"

namespace dapple::soft {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local constinit unsigned depth = 0;  // in the plug-in, or in on_free()

int (*is_owned)(const volatile void* block);
size_t (*allocated_size)(const volatile void* block);
void (*watcher)(const void* block, size_t size);

void on_malloc(const volatile void*, size_t) {}

// In the thread that frees the block, before it does. A block that is freed twice, or that is none, comes here, too:
// the sanitizer reports it afterwards, and ends the program if it is asked for the size.
void on_free(const volatile void* block) {
  if (depth != 0 || is_owned(block) == 0) return;
  depth++;
  watcher(const_cast<const void*>(block), allocated_size(block));
  depth--;
}

}  // namespace

Sanitizer* AddressSanitizer::of_program() {
  static AddressSanitizer made;
  const bool there = find_in_program("__asan_region_is_poisoned", made.region_is_poisoned_) &&
                     find_in_program("__asan_report_error", made.report_error_);
  return there ? &made : nullptr;
}

bool AddressSanitizer::watch_heap(void (*freed)(const void* block, size_t size)) {
  int (*install)(void (*)(const volatile void*, size_t), void (*)(const volatile void*));
  if (!find_in_program("__sanitizer_install_malloc_and_free_hooks", install) ||
      !find_in_program("__sanitizer_get_ownership", is_owned) ||
      !find_in_program("__sanitizer_get_allocated_size", allocated_size)) {
    return false;
  }
  assert(watcher == nullptr);
  watcher = freed;
  return install(on_malloc, on_free) != 0;
}

void AddressSanitizer::enter_plugin() {
  depth++;
}

void AddressSanitizer::leave_plugin() {
  assert(depth > 0);
  depth--;
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
