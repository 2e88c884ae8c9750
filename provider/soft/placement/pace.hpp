// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soft {

// Tells queue pairs that stream, with many requests on their way, from those whose program waits for each one. For one
// request, the sender's copy into the peer's memory is the quickest way. For a stream of requests whose bytes the
// kernel copies twice, packets are quicker, because they also use the peer's CPU.
class Pace {
 public:
  // Before each request that could be placed. `taken`: how many completions the program has taken from their queue.
  void note(uint32_t taken) {
    if (taken != taken_) {
      taken_ = taken;
      untaken_ = 0;
      if (++awaited_ >= kAwaited) streams_ = false;
    } else if (++untaken_ >= kUntaken) {
      awaited_ = 0;
      streams_ = true;
    }
  }
  bool streams() const { return streams_; }

 private:
  static constexpr uint32_t kUntaken = 4, kAwaited = 8;  // requests

  uint32_t taken_ = 0;
  uint32_t untaken_ = 0;  // requests since the program has taken one
  uint32_t awaited_ = 0;  // requests in a row that the program waited for
  bool streams_ = false;
};

}  // namespace dapple::soft
