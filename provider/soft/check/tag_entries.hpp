// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The check's notes about the entries of a list of tags, by their handles, because a program may remove an entry.
#pragma once

#include <cstdint>
#include <map>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"

namespace dapple::soft::check {

// Guarded by the list's lock.
class TagEntries final : public TagWatch {
 public:
  // The numbers of a receive in PostedReceives, WithheldBytes and PostedContexts.
  struct Numbers {
    uint64_t id = 0;
    uint64_t receive = 0;
    uint64_t withheld = WithheldBytes::kNone;
    uint64_t context = PostedContexts::kNone;
  };

  TagEntries(Checker& checker, TagList& list) : checker_(checker), list_(list) {}

  // Takes the lock.
  void add(uint32_t handle, const Numbers& numbers);
  void removed(uint32_t handle) override;
  // The device does not have the receive of this queue, or list.
  static void forget(Checker& checker, const void* queue, const Numbers& numbers);

 private:
  struct Entry {
    uint32_t handle;
    Numbers numbers;
  };

  Checker& checker_;
  TagList& list_;
  std::map<uint32_t, Entry> entries_;  // by their places in the list, the last one of each place
};

}  // namespace dapple::soft::check
