// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_LOOK_AGAIN_HPP
#define DAPPLE_PROVIDER_SOFT_LOOK_AGAIN_HPP

#include <sched.h>

namespace dapple::soft {

// How often a thread looks for an answer, or for the next question, before it sleeps. Programs and dappled answer each
// other in less time than it takes to fall asleep and wake up. A count, because on a slow machine all of that is slow.
inline constexpr int kLooks = 32;

// Calls `found` until it returns true, but not too often. It must not wait. In between, the thread lets others run: on
// a single CPU the answer comes from one of them.
template <class Found>
bool look_again(Found&& found) {
  for (int i = 0; i < kLooks; ++i) {
    if (found()) return true;
    sched_yield();
  }
  return false;
}

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_LOOK_AGAIN_HPP
