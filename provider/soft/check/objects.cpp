// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/objects.hpp"

#include <vector>

namespace dapple::soft::check {

void Objects::add(const void* object, const char* verb) {
  add(object, Place{verb, here()});
}

void Objects::add(const void* object, const Place& made) {
  const std::lock_guard lock(mutex_);
  objects_.insert_or_assign(object, made);
}

std::optional<Place> Objects::remove(const void* object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return std::nullopt;
  const Place made = found->second;
  objects_.erase(found);
  return made;
}

std::optional<Place> Objects::made(const void* object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  return found == objects_.end() ? std::nullopt : std::optional(found->second);
}

void Objects::report_all(Reporter& reporter) {
  std::vector<Place> left;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, place] : objects_) left.push_back(place);
  }
  for (const Place& place : left) {
    reporter.show({.level = Level::kNote,
                   .kind = "left-object",
                   .text = format("An object is left at exit: it was %s().", place.title),
                   .remedy = "Destroy the object before the program ends, or tools for leaks report it.",
                   .places = {place}});
  }
}

}  // namespace dapple::soft::check
