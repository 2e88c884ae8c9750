// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requests that a program knows to be complete: its clock in the order of happens-before. Each request has a stamp,
// the time of its post, which goes up in each queue pair. A request of a queue pair is known if its stamp is not above
// the queue pair's here.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <type_traits>

namespace dapple::soft::check {

// Has a fixed size. If there are more queue pairs, the one with the lowest stamp is forgotten, and all requests up to
// its stamp count as known: then a race may be missed, and never a correct program be reported.
struct KnownRequests {
  static constexpr uint32_t kMost = 32;

  struct Entry {
    uint32_t qpn = 0;
    uint32_t reserved = 0;
    uint64_t stamp = 0;
  };

  uint64_t floor = 0;  // all requests up to this stamp are known, of any queue pair
  uint32_t count = 0;
  uint32_t reserved = 0;
  Entry entries[kMost];

  bool has(uint32_t qpn, uint64_t stamp) const {
    if (stamp <= floor) return true;
    for (uint32_t i = 0; i < count; i++) {
      if (entries[i].qpn == qpn) return stamp <= entries[i].stamp;
    }
    return false;
  }

  // These return whether anything has changed.
  bool add(uint32_t qpn, uint64_t stamp) {
    if (has(qpn, stamp)) return false;
    Entry* const end = entries + count;
    Entry* place = std::find_if(entries, end, [&](const Entry& entry) { return entry.qpn == qpn; });
    if (place == end && count == kMost) {
      place = std::min_element(entries, end, [](const Entry& a, const Entry& b) { return a.stamp < b.stamp; });
      if (stamp <= place->stamp) return add_all_until(stamp);
      add_all_until(place->stamp);
      place = entries + count;
    }
    if (place == entries + count) count++;
    *place = {qpn, 0, stamp};
    assert(count <= kMost);
    return true;
  }
  bool add_all_until(uint64_t stamp) {
    if (stamp <= floor) return false;
    floor = stamp;
    const Entry* end =
        std::remove_if(entries, entries + count, [&](const Entry& entry) { return entry.stamp <= floor; });
    count = static_cast<uint32_t>(end - entries);
    return true;
  }
  bool add(const KnownRequests& others) {
    bool changed = add_all_until(others.floor);
    for (uint32_t i = 0; i < others.count; i++) changed |= add(others.entries[i].qpn, others.entries[i].stamp);
    return changed;
  }
  // Another process may have written anything.
  bool is_sound() const { return count <= kMost; }
};
static_assert(std::is_trivially_copyable_v<KnownRequests> && sizeof(KnownRequests) == 528);

}  // namespace dapple::soft::check
