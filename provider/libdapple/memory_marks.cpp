// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/memory_marks.hpp"

#include <atomic>

#include "provider/common/check_calls.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/libdapple/plugin.hpp"

namespace dapple::provider {

void mark_memory(const void* memory, size_t size, bool is_free) {
  if (settings().check_records == nullptr) return;
  static constinit std::atomic<MarkMemory> found = nullptr;
  const ErrnoGuard keep;
  MarkMemory mark = found.load(std::memory_order_acquire);
  if (mark == nullptr) {
    mark = reinterpret_cast<MarkMemory>(find_in_plugin(kMarkMemory));
    found.store(mark, std::memory_order_release);
  }
  if (mark != nullptr) mark(memory, size, is_free);
}

}  // namespace dapple::provider
