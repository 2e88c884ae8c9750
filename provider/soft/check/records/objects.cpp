// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/objects.hpp"

#include <cassert>
#include <string>
#include <utility>

namespace dapple::soft::check {

void Objects::add(const void* object, const char* verb) {
  add(object, ReportedStack{verb, here()});
}

void Objects::add(const void* object, const ReportedStack& made) {
  const std::lock_guard lock(mutex_);
  assert(object != nullptr && made.title != nullptr);
  objects_.insert_or_assign(object, made);
}

std::optional<ReportedStack> Objects::remove(const void* object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return std::nullopt;
  const ReportedStack made = found->second;
  objects_.erase(found);
  return made;
}

std::optional<ReportedStack> Objects::made(const void* object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

void Objects::forget_all() {
  const std::lock_guard lock(mutex_);
  objects_.clear();
}

void Objects::report_all(Reporter& reporter) {
  // Those that one line has made are one note.
  std::map<std::string, std::pair<ReportedStack, size_t>> left;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, place] : objects_) {
      const std::string line = place.title + bytes_of(place.stack);
      left.try_emplace(line, place, 0).first->second.second++;
    }
  }
  for (const auto& [line, places] : left) {
    const auto& [place, count] = places;
    reporter.show({.level = Level::kNote,
                   .kind = "left-object",
                   .text = count == 1 ? format("An object is left at exit: it was %s().", place.title)
                                      : format("%zu objects are left at exit: each was %s().", count, place.title),
                   .remedy = "Destroy each object before the program ends, or tools for leaks report it.",
                   .places = {place}});
  }
}

}  // namespace dapple::soft::check
