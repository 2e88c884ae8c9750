// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/sanitizers/sanitizer.hpp"

#include <stdio.h>
#include <unistd.h>

#include "provider/soft/sanitizers/address_sanitizer.hpp"
#include "provider/soft/sanitizers/memcheck.hpp"
#include "provider/soft/sanitizers/memory_sanitizer.hpp"
#include "provider/soft/sanitizers/thread_sanitizer.hpp"

namespace dapple::soft {

Sanitizer* Sanitizer::of_program() {
  static Sanitizer* const found = []() -> Sanitizer* {
    if (Sanitizer* address = AddressSanitizer::of_program()) return address;
    if (Sanitizer* memory = MemorySanitizer::of_program()) return memory;
    if (Sanitizer* threads = ThreadSanitizer::of_program()) return threads;
    return Memcheck::of_program();
  }();
  return found;
}

void Sanitizer::announce(const DeviceAccess& access, const void* memory, size_t size) {
  char line[160];
  const int length = snprintf(line, sizeof line, "dapple: %s, %zu bytes at %p, of queue pair 0x%x with key 0x%x:\n",
                              access.what, size, memory, access.who.qpn, access.key);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<size_t>(length));
}

}  // namespace dapple::soft
