// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/check/reports/known_stacks.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// As Stack::here(), which takes microseconds for each call. A thread that comes here again by the same callers gets the
// stack of the last time: a look at each place where a caller's return address was then shows that it is still there.
// Only x86-64 has a cache. The function itself is no caller on any machine.
#ifdef __x86_64__
KnownStack cached_stack();
#else
[[gnu::always_inline]] inline KnownStack cached_stack() {
  return KnownStacks::get().known(Stack::here());
}
#endif

}  // namespace dapple::soft::check
