// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft::check {

// The queue pairs of this process about which a report has told why they refuse a peer's request. The peer's failed
// request then needs no report of its own.
//
// Threads: any, without a lock.
class ToldQueuePairs {
 public:
  void add(uint32_t qpn) { word_of(qpn).fetch_or(bit_of(qpn)); }
  // The number may come back for another queue pair.
  void remove(uint32_t qpn) { word_of(qpn).fetch_and(~bit_of(qpn)); }
  bool has(uint32_t qpn) { return (word_of(qpn).load() & bit_of(qpn)) != 0; }

 private:
  // The numbers of one process differ in these bits alone.
  static constexpr uint32_t kNumbers = 1 << 16;
  static constexpr uint32_t kBits = 64;

  std::atomic<uint64_t>& word_of(uint32_t qpn) { return words_[qpn % kNumbers / kBits]; }
  static uint64_t bit_of(uint32_t qpn) { return uint64_t{1} << (qpn % kBits); }

  std::atomic<uint64_t> words_[kNumbers / kBits] = {};
};

}  // namespace dapple::soft::check
