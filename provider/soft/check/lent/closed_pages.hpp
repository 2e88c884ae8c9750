// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Pages of requests' buffers that the program may not look at before the poll: an access to them faults, is told, and
// goes on.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "provider/soft/check/lent/lent_memory.hpp"
#include "provider/soft/check/lent/short_list.hpp"
#include "provider/soft/check/reports/owner.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// Whose pages are closed.
struct ClosedFor {
  bool is_receive = false;  // false: a Read or an atomic
  Owner owner;
  KnownStack posted;
};

// The first access of the program to closed pages.
struct Look {
  enum class Kind : uint8_t { kUnknown, kRead, kWrite };

  uintptr_t address;
  Kind kind;
  Stack stack;
  ClosedFor request;
};

// The pages that lie wholly in the buffer of one request; other pages have other data, too. The memory must be private
// and have the rights to read and to write alone. A system call that gets closed pages fails with EFAULT. One thread at
// a time; on_fault() may run meanwhile.
class ClosedPages {
 public:
  // From now on close() closes pages, and `told` gets the looks: in a handler of SIGSEGV, in the thread that looks.
  static void start(void (*told)(const Look& look));
  // True if some of these bytes are closed.
  static bool has(const void* memory, size_t size);
  // In a child of fork(), whose only thread this is: no other thread tells a look.
  static void after_fork_in_child();

  ClosedPages() = default;
  ~ClosedPages() { open(); }
  ClosedPages(const ClosedPages&) = delete;
  ClosedPages& operator=(const ClosedPages&) = delete;

  // At most once. Closes nothing if many other pages are closed, or if the program has a handler of SIGSEGV that was
  // installed later than the check's.
  void close(const Pieces& pieces, const ClosedFor& request);
  void open();
  // The program has looked at the pages.
  bool was_seen() const { return was_seen_; }

  // Calls use(offset, size) for the parts of these bytes that have never been closed.
  template <typename Use>
  void for_each_open(const std::byte* memory, size_t size, Use use) const {
    const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + size;
    uintptr_t at = begin;
    for (const Range& range : ranges_) {
      // The callers ask about bytes of one piece of the buffer, which has at most one range.
      if (range.end <= at || range.begin >= end) continue;
      if (range.begin > at) use(at - begin, range.begin - at);
      at = std::min(range.end, end);
    }
    if (at < end) use(at - begin, end - at);
  }

 private:
  struct Range {
    uintptr_t begin, end;
    size_t slot;
  };

  ShortList<Range, 2> ranges_;
  bool is_closed_ = false;
  bool was_seen_ = false;
};

}  // namespace dapple::soft::check
