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

#include "provider/common/clock.hpp"
#include "provider/soft/check/races/queue_pair_name.hpp"

namespace dapple::soft::check {

// Has a fixed size. If there are more queue pairs, the one with the lowest stamp is forgotten, and all requests up to
// its stamp count as known: then a race may be missed, and never a correct program be reported.
struct KnownRequests {
  static constexpr uint32_t kMost = 32;

  struct Entry {
    QueuePairName name = 0;
    uint64_t stamp = 0;

    bool is_of_this_host() const { return host_of(name) == kThisHost; }
  };

  uint64_t floor = 0;  // all requests up to this time of this host are known, of any queue pair
  uint32_t count = 0;
  uint32_t reserved = 0;
  Entry entries[kMost];

  // `since`: a time of this host that is not after the request's end. The stamp, if it is a request of this host.
  bool has(QueuePairName name, uint64_t stamp, uint64_t since) const {
    if (since <= floor) return true;
    const Entry* const end = entries + count;
    const Entry* found = std::find_if(entries, end, [=](const Entry& entry) { return entry.name == name; });
    return found != end && stamp <= found->stamp;
  }
  bool has(QueuePairName name, uint64_t stamp) const {
    return has(name, stamp, host_of(name) == kThisHost ? stamp : UINT64_MAX);
  }

  // These return whether anything has changed. The requests are complete by now.
  bool add(QueuePairName name, uint64_t stamp) {
    if (has(name, stamp)) return false;
    Entry* const end = entries + count;
    Entry* place = std::find_if(entries, end, [&](const Entry& entry) { return entry.name == name; });
    if (place == end && count == kMost) {
      // Those of this host first.
      place = std::min_element(entries, end, [](const Entry& a, const Entry& b) {
        if (a.is_of_this_host() != b.is_of_this_host()) return a.is_of_this_host();
        return a.stamp < b.stamp;
      });
      if (!place->is_of_this_host()) return add_all(now_ns());
      if (host_of(name) == kThisHost && stamp <= place->stamp) return add_all_until(stamp);
      add_all_until(place->stamp);
      place = entries + count;
    }
    if (place == entries + count) count++;
    *place = {name, stamp};
    assert(count <= kMost);
    return true;
  }
  // The times are those of requests of this host.
  bool add_all_until(uint64_t time) {
    if (time <= floor) return false;
    floor = time;
    const Entry* end = std::remove_if(
        entries, entries + count, [&](const Entry& entry) { return entry.is_of_this_host() && entry.stamp <= floor; });
    count = static_cast<uint32_t>(end - entries);
    return true;
  }
  // All that is known is complete by now.
  bool add_all(uint64_t now) {
    const bool is_new = add_all_until(now);
    count = 0;
    return is_new;
  }
  bool add(const KnownRequests& others) {
    bool changed = add_all_until(others.floor);
    for (uint32_t i = 0; i < others.count; i++) changed |= add(others.entries[i].name, others.entries[i].stamp);
    return changed;
  }
  // Another process may have written anything.
  bool is_sound() const { return count <= kMost; }
};
static_assert(std::is_trivially_copyable_v<KnownRequests> && sizeof(KnownRequests) == 528);

}  // namespace dapple::soft::check
