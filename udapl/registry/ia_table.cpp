// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/ia_table.hpp"

#include <algorithm>
#include <cstring>

#include "udapl/registry/common/never_destroyed.hpp"

namespace dapple::registry {

IaTable& ia_table() {
  static NeverDestroyed<IaTable> only;
  return only.value;
}

DAT_IA_HANDLE IaTable::reverse(DAT_IA_HANDLE provider_ia) {
  if (registry().is_given_up()) return nullptr;
  const std::lock_guard lock(mutex_);
  for (const Open& open : open_)
    if (open.provider_ia == provider_ia) return open.handle;
  return nullptr;
}

DAT_IA_HANDLE IaTable::insert(DAT_IA_HANDLE provider_ia, const ProviderUse& use) {
  const std::lock_guard lock(mutex_);
  if constexpr (!kNumbersIas) {
    open_.push_back({provider_ia, provider_ia, use});
    if (put_in_place(provider_ia)) return provider_ia;
    open_.pop_back();
    return nullptr;
  }
  for (std::uintptr_t tried = 1; tried < kSize; ++tried) {
    last_ = last_ + 1 < kSize ? last_ + 1 : 1;
    if (provider_ias_[last_].load(std::memory_order_relaxed)) continue;
    const auto handle = reinterpret_cast<DAT_IA_HANDLE>(last_);  // NOLINT(performance-no-int-to-ptr): it is a number
    open_.push_back({handle, provider_ia, use});
    provider_ias_[last_].store(provider_ia, std::memory_order_release);
    return handle;
  }
  return nullptr;
}

std::optional<ProviderUse> IaTable::begin_close(DAT_IA_HANDLE handle) {
  std::unique_lock lock(mutex_);
  const auto open = find(handle);
  if (open == open_.end() || open->closing) return std::nullopt;
  open->closing = true;
  // The entry moves while other threads open and close, but only we remove it.
  unpinned_.wait(lock, [&] { return find(handle)->pins == 0; });
  return find(handle)->use;
}

void IaTable::cancel_close(DAT_IA_HANDLE handle) {
  const std::lock_guard lock(mutex_);
  find(handle)->closing = false;
}

void IaTable::finish_close(DAT_IA_HANDLE handle) {
  const std::lock_guard lock(mutex_);
  if constexpr (kNumbersIas) {
    provider_ias_[reinterpret_cast<std::uintptr_t>(handle)].store(nullptr, std::memory_order_release);
  } else {
    take_from_place(handle);
  }
  open_.erase(find(handle));
  if (open_.empty()) open_.shrink_to_fit();
}

bool IaTable::put_in_place(DAT_IA_HANDLE handle) {
  std::uintptr_t place = first_place(handle);
  for (std::uintptr_t looked = 0; looked < kSize; ++looked, place = next_place(place)) {
    const DAT_IA_HANDLE here = provider_ias_[place].load(std::memory_order_relaxed);
    if (here && here != gone()) continue;
    provider_ias_[place].store(handle, std::memory_order_release);
    return true;
  }
  return false;
}

// No pointer lies behind the last of a run, so there a place becomes free again, with those before it that are gone.
void IaTable::take_from_place(DAT_IA_HANDLE handle) {
  std::uintptr_t place = find_place(handle);
  const bool is_last = !provider_ias_[next_place(place)].load(std::memory_order_relaxed);
  provider_ias_[place].store(is_last ? nullptr : gone(), std::memory_order_release);
  for (std::uintptr_t looked = 1; is_last && looked < kSize; ++looked) {
    place = place ? place - 1 : kSize - 1;
    if (provider_ias_[place].load(std::memory_order_relaxed) != gone()) break;
    provider_ias_[place].store(nullptr, std::memory_order_release);
  }
}

PinnedIa::PinnedIa(const char* ia_name) {
  IaTable& table = ia_table();
  const std::lock_guard lock(table.mutex_);
  for (IaTable::Open& open : table.open_) {
    if (open.closing || std::strcmp(open.use.info.ia_name, ia_name) != 0) continue;
    open.pins++;
    handle_ = open.handle;
    provider_ia_ = open.provider_ia;
    return;
  }
}

PinnedIa::~PinnedIa() {
  if (!provider_ia_) return;
  IaTable& table = ia_table();
  const std::lock_guard lock(table.mutex_);
  const auto open = table.find(handle_);
  // A child of fork() may find the entry without the pin, or no entry.
  if (open == table.open_.end() || open->pins == 0) return;
  if (--open->pins == 0) table.unpinned_.notify_all();
}

std::vector<IaTable::Open>::iterator IaTable::find(DAT_IA_HANDLE handle) {
  return std::find_if(open_.begin(), open_.end(), [=](const Open& open) { return open.handle == handle; });
}

}  // namespace dapple::registry
