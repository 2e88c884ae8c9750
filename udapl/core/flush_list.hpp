// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The rings of requests that an EVD flushes itself. Software iWARP flushes what it finds when a queue pair enters the
// error state and looks at nothing that comes later, so what it leaves would never complete.
//
// Threads: internally locked. A link belongs to its endpoint and must be out of every list before that goes.
#pragma once

#include <mutex>
#include <utility>

#include "udapl/core/cookie_ring.hpp"

namespace dapple::dat {

struct FlushLink {
  explicit FlushLink(CookieRing& of) : ring(of) {}

  CookieRing& ring;
  // Requests that the device has not completed by then have been completed without it; its later completions are
  // ignored. Belongs to the EVD.
  bool flushed = false;

 private:
  friend class FlushList;
  FlushLink* next_ = nullptr;
  bool linked_ = false;
};

class FlushList {
 public:
  // A link is in one list at most, and there once.
  void add(FlushLink& link) {
    std::lock_guard guard(mutex_);
    if (std::exchange(link.linked_, true)) return;
    link.next_ = std::exchange(first_, &link);
  }

  // Null when there is none.
  FlushLink* take() {
    std::lock_guard guard(mutex_);
    FlushLink* const link = first_;
    if (!link) return nullptr;
    first_ = link->next_;
    link->linked_ = false;
    return link;
  }

  // If it is in this list.
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

}  // namespace dapple::dat
