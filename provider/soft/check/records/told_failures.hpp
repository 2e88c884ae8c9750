// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft::check {

// The queue pairs of this process of which a report has told why a request fails. The completion of that request then
// needs no report of its own. A request is told about before its completion can be polled.
//
// Threads: any, without a lock.
class ToldFailures {
 public:
  enum What : uint8_t {
    kOwnRequest = 1,    // why a request of the queue pair fails
    kPeersRequest = 2,  // why the queue pair refuses a request of its peer, or its receive fails
    kUnfitRequest = 4   // why a request that the queue pair cannot do will fail, maybe after another one
  };

  void add(uint32_t qpn, What what) { mark_of(qpn).fetch_or(what); }
  bool has(uint32_t qpn, What what) { return (mark_of(qpn).load() & what) != 0; }
  // The same, and forgets it.
  bool take(uint32_t qpn, What what) { return (mark_of(qpn).fetch_and(static_cast<uint8_t>(~what)) & what) != 0; }
  // The queue pair starts again, or its number may come back for another.
  void remove(uint32_t qpn) { mark_of(qpn).store(0); }

 private:
  // The numbers of one process differ in these bits alone.
  static constexpr uint32_t kNumbers = 1 << 16;

  std::atomic<uint8_t>& mark_of(uint32_t qpn) { return marks_[qpn % kNumbers]; }

  std::atomic<uint8_t> marks_[kNumbers] = {};
};

}  // namespace dapple::soft::check
