// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requests that a program knows to be complete: its clock in the order of happens-before. Each request has a stamp,
// the time of its post, which goes up in each queue pair. A request of a queue pair is known if its stamp is not above
// the queue pair's here. Stamps of another host are times of its own clock, so they are compared with each other only.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <type_traits>

#include "provider/soft/check/races/queue_pair_name.hpp"

namespace dapple::soft::check {

// Has a fixed size. If there are more queue pairs, the one that has been learned of first is forgotten, and all
// requests until then count as known: then a race may be missed, and never a correct program be reported.
struct KnownRequests {
  static constexpr uint32_t kMax = 32;

  struct Entry {
    QueuePairName name = 0;
    uint64_t stamp = 0;
    uint64_t learned = 0;  // a time of this host at which the request was complete

    bool is_of_this_host() const { return host_of(name) == kThisHost; }
  };

  // All requests that were complete at this time of this host are known, of any queue pair. So are all requests of this
  // host with a stamp until then. Another host does not know which of these were still under way: the entries stay that
  // have been learned later.
  uint64_t floor = 0;
  uint32_t count = 0;
  uint32_t reserved = 0;
  Entry entries[kMax];

  // `since`: a time of this host that is not after the request's end. The stamp, if it is a request of this host.
  bool has(QueuePairName name, uint64_t stamp, uint64_t since) const {
    if (since <= floor) return true;
    const Entry* const end = entries + count;
    const Entry* found = std::find_if(entries, end, [=](const Entry& entry) { return entry.name == name; });
    return found != end && stamp <= found->stamp;
  }

  // These return whether anything has changed.
  bool add(QueuePairName name, uint64_t stamp, uint64_t learned) {
    if (learned <= floor) return false;
    Entry* const end = entries + count;
    Entry* place = std::find_if(entries, end, [=](const Entry& entry) { return entry.name == name; });
    if (place != end && stamp <= place->stamp) return false;
    if (place == end && count == kMax) {
      const Entry* first =
          std::min_element(entries, end, [](const Entry& a, const Entry& b) { return a.learned < b.learned; });
      if (learned <= first->learned) return add_all_until(learned);
      add_all_until(first->learned);
      place = entries + count;
    }
    if (place == entries + count) count++;
    *place = {name, stamp, learned};
    assert(count <= kMax);
    return true;
  }
  // All that was complete at this time of this host.
  bool add_all_until(uint64_t time) {
    if (time <= floor) return false;
    floor = time;
    const Entry* end =
        std::remove_if(entries, entries + count, [=](const Entry& entry) { return entry.learned <= time; });
    count = static_cast<uint32_t>(end - entries);
    return true;
  }
  bool add(const KnownRequests& others) {
    bool changed = add_all_until(others.floor);
    for (uint32_t i = 0; i < others.count; i++) {
      const Entry& other = others.entries[i];
      changed |= add(other.name, other.stamp, other.learned);
    }
    return changed;
  }
  // Another process may have written anything.
  bool is_sound() const { return count <= kMax; }
};
static_assert(std::is_trivially_copyable_v<KnownRequests> && sizeof(KnownRequests) == 784);

}  // namespace dapple::soft::check
