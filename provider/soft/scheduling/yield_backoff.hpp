// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Gives the CPU to other threads between polls in vain. A peer on the same CPU needs it and gives it back soon. A
// program that computes keeps it for a whole time slice, and a message would wait that long. So a yield that took long
// is followed by a pause without yields that is many times longer. A yield that took no time found no other thread. It
// costs as much as a look at the network, so the next one waits for a moment.
#pragma once

#include <algorithm>

#include "roce/host/ports.hpp"

namespace dapple::soft {

class YieldBackoff {
 public:
  // `now` returns the monotonic time.
  template <class Now, class Yield>
  void operator()(Now now, Yield yield) {
    const roce::Time before = now();
    if (before < resume_) return;
    yield();
    const roce::Time after = now();
    const roce::Time took = after - before;
    if (took > kLong) resume_ = after + kPause * std::min(took, kLongest);
    if (took < kShort) resume_ = after + kMoment;
  }

 private:
  static constexpr roce::Time kShort = 3'000;
  static constexpr roce::Time kMoment = 20'000;
  static constexpr roce::Time kLong = 500'000;
  static constexpr roce::Time kPause = 8;
  static constexpr roce::Time kLongest = 20'000'000;  // a program that was stopped was away for longer

  roce::Time resume_ = 0;
};

}  // namespace dapple::soft
