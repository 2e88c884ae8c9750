// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/cached_stack.hpp"

#ifdef __x86_64__

#include <stdint.h>
#include <unwind.h>

#include <cassert>
#include <cstddef>

#include "provider/common/thread_object.hpp"

namespace dapple::soft::check {

namespace {

// A stack, and the places in memory that have the return addresses. Those of the innermost call are compared first, so
// the places of the others are on the same stack when they are read.
struct Known {
  KnownStack stack;
  void* const* places[Stack::kMax] = {};
  int checked = 0;  // places; 0: nothing is known

  bool is_here(void* const* place, const void* address) const {
    if (checked == 0 || places[0] != place) return false;
    assert(checked == static_cast<const Stack&>(stack).count);
    void* const* const callers = static_cast<const Stack&>(stack).callers;
    if (callers[0] != address) return false;
    for (int i = 1; i < checked; i++) {
      if (*static_cast<void* const volatile*>(places[i]) != callers[i]) return false;
    }
    return true;
  }
};

// The caller is always check::here(), and its callers have frames of different sizes. A function that posts at several
// lines, or several functions that are called from one place in turn, have their return addresses at the same places.
struct Cache {
  static constexpr size_t kSets = 16;
  struct Set {
    static constexpr size_t kEntries = 8;
    Known entries[kEntries];
    size_t next = 0;  // the entry to be replaced
  };
  Set sets[kSets];

  // Frames begin at multiples of 16 bytes.
  Set& set(const void* place) {
    const auto number = reinterpret_cast<uintptr_t>(place) / (2 * sizeof(void*));
    return sets[(number ^ number >> 4 ^ number >> 8) % kSets];
  }
};

struct Walk {
  void* const* first;  // the place of the innermost return address that counts
  Stack stack = {};
  Known known = {};
};

_Unwind_Reason_Code look_at(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  Stack& stack = walk.stack;
  Known& known = walk.known;
  // The canonical frame address of the callee: its return address, which is in this frame, stands below.
  auto* const place = reinterpret_cast<void* const*>(_Unwind_GetCFA(context)) - 1;
  if (stack.count == 0 && place != walk.first) return _URC_NO_REASON;
  auto* const address = reinterpret_cast<void*>(_Unwind_GetIP(context));
  if (address == nullptr || stack.count == Stack::kMax) return _URC_NORMAL_STOP;
  // A signal's frame has no such place.
  if (known.checked == stack.count && *place == address) known.places[known.checked++] = place;
  stack.callers[stack.count++] = address;
  return _URC_NO_REASON;
}

}  // namespace

// The frame pointer shows where this function's return address is.
[[gnu::noinline]] KnownStack cached_stack() {
  void* const* const place = static_cast<void**>(__builtin_frame_address(0)) + 1;
  Cache* const cache = ThreadObject<Cache>::get();
  if (cache == nullptr) return KnownStacks::get().known(Stack::here());
  Cache::Set& set = cache->set(place);
  for (const Known& known : set.entries) {
    if (known.is_here(place, *place)) return known.stack;
  }
  Walk walk = {place};
  _Unwind_Backtrace(look_at, &walk);
  Known& known = walk.known;
  assert(known.checked <= walk.stack.count);
  known.stack = KnownStacks::get().known(walk.stack.count == 0 ? Stack::here() : walk.stack);
  // Without all places a caller may be another one next time. KnownStacks may be full.
  if (known.checked != static_cast<const Stack&>(known.stack).count) return known.stack;
  set.entries[set.next] = known;
  set.next = (set.next + 1) % Cache::Set::kEntries;
  return known.stack;
}

}  // namespace dapple::soft::check

#endif
