// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/tag_entries.hpp"

#include <mutex>

namespace dapple::soft::check {

void TagEntries::add(uint32_t handle, const Numbers& numbers) {
  const std::lock_guard lock(list_.mutex);
  entries_.insert_or_assign(TagList::place_of(handle), Entry{handle, numbers});
}

void TagEntries::removed(uint32_t handle) {
  assert_held(list_.mutex);
  const auto found = entries_.find(TagList::place_of(handle));
  if (found == entries_.end() || found->second.handle != handle) return;
  forget(checker_, &list_, found->second.numbers);
  entries_.erase(found);
}

void TagEntries::forget(Checker& checker, const void* queue, const Numbers& numbers) {
  checker.receives.remove(queue, numbers.receive);
  if (numbers.withheld != WithheldBytes::kNone) checker.withheld.remove(numbers.withheld);
  if (numbers.context != PostedContexts::kNone) checker.contexts.remove(numbers.id, numbers.context);
}

}  // namespace dapple::soft::check
