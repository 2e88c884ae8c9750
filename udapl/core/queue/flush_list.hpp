// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The rings of requests that an EVD flushes itself. Software iWARP flushes the requests that it finds when a queue pair
// enters the error state and ignores later ones, which would never complete.
//
// Threads: internally locked. A link belongs to its endpoint, which must take it out of every list before it is
// destroyed.
#pragma once

#include <cassert>
#include <mutex>
#include <utility>

#include "udapl/core/queue/work_request_ring.hpp"

namespace dapple::udapl {

struct FlushLink {
  explicit FlushLink(WorkRequestRing& of) : ring(of) {}

  WorkRequestRing& ring;
  // When the device has not completed requests in time, the EVD completes them and ignores the device's later
  // completions. The EVD owns this.
  bool flushed = false;

 private:
  friend class FlushList;
  FlushLink* next_ = nullptr;
  bool linked_ = false;
};

class FlushList {
 public:
  // A link is in at most one list, and only once.
  void add(FlushLink& link) {
    std::lock_guard guard(mutex_);
    if (std::exchange(link.linked_, true)) return;
    link.next_ = std::exchange(first_, &link);
  }

  // Null if the list is empty.
  FlushLink* take() {
    std::lock_guard guard(mutex_);
    FlushLink* const link = first_;
    if (!link) return nullptr;
    assert(link->linked_);
    first_ = link->next_;
    link->linked_ = false;
    return link;
  }

  // Does nothing if the link is not in this list.
  void remove(FlushLink& link) {
    std::lock_guard guard(mutex_);
    for (FlushLink** at = &first_; *at; at = &(*at)->next_) {
      if (*at != &link) continue;
      *at = link.next_;
      link.linked_ = false;
      return;
    }
  }

 private:
  std::mutex mutex_;
  FlushLink* first_ = nullptr;
};

}  // namespace dapple::udapl
