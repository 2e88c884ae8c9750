// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/holders.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

namespace dapple::soft::explain {

Holders& Holders::get() {
  // Threads that outlive main() use it.
  static auto* const holders = new Holders;
  return *holders;
}

void Holders::add(const void* object, std::string name, const char* verb, const std::vector<const void*>& used) {
  assert(object != nullptr && verb != nullptr && !name.empty());
  Known known = {.holder = {std::move(name), {verb, check::Stack::here()}}, .used = {}};
  for (const void* each : used) {
    if (each != nullptr) known.used.push_back(each);
  }
  const std::lock_guard lock(mutex_);
  objects_.insert_or_assign(object, std::move(known));
}

void Holders::use(const void* object, const void* used) {
  assert(used != nullptr && used != object);
  const std::lock_guard lock(mutex_);
  if (const auto known = objects_.find(object); known != objects_.end()) known->second.used.push_back(used);
}

void Holders::remove(const void* object) {
  const std::lock_guard lock(mutex_);
  objects_.erase(object);
}

std::vector<Holders::Holder> Holders::of(const void* object, size_t& all) {
  std::vector<Holder> found;
  all = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [each, known] : objects_) {
    if (std::find(known.used.begin(), known.used.end(), object) == known.used.end()) continue;
    if (all++ < kMax) found.push_back(known.holder);
  }
  assert(found.size() == std::min(all, kMax));
  return found;
}

}  // namespace dapple::soft::explain
