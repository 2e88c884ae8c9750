// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The completions that were taken off a CQ and wait for the consumer: a ring that grows when more of them wait.
//
// Threads: the caller serializes all calls.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "ibverbs-glue/verbs.hpp"

namespace dapple::udapl {

class CompletionRing {
 public:
  static constexpr uint32_t kBatch = 16;  // completions taken off a CQ at a time

  // Must precede all other calls but count() and empty(). False without memory.
  [[nodiscard]] bool open() { return resize(2 * kBatch); }

  uint32_t count() const { return head_ - tail_; }
  bool empty() const { return head_ == tail_; }
  bool full() const { return count() == capacity(); }
  uint32_t capacity() const { return mask_ + 1; }

  // The oldest completion.
  const ibv_wc& front() const {
    assert(!empty());
    return ring_[tail_ & mask_];
  }
  void pop_front() {
    assert(!empty());
    ++tail_;
  }
  void push_back(const ibv_wc& completion) {
    assert(!full());
    ring_[head_++ & mask_] = completion;
  }

  // Makes room for more completions, up to `most`, rounded up to a power of two. False if there is room for that many,
  // or without memory.
  [[nodiscard]] bool grow(uint32_t most) {
    most = std::bit_ceil(most);
    return capacity() < most && resize(std::min(most, 4 * capacity()));
  }

  // Calls poll(completions, capacity), which does as ibv_poll_cq() does, for a batch at most. Returns its result.
  // keep() must follow; until then the polled completions do not count. The ring must not be full.
  template <class Poll>
  int poll(Poll poll) {
    assert(!full());
    const uint32_t room = std::min(capacity() - count(), capacity() - (head_ & mask_));
    return poll(&ring_[head_ & mask_], static_cast<int>(std::min(kBatch, room)));
  }
  // The same for an empty ring, in which the completions are first().
  template <class Poll>
  [[gnu::always_inline]] int poll_into_empty(Poll poll) {
    assert(empty());
    head_ = tail_ = 0;
    return poll(ring_.get(), static_cast<int>(kBatch));
  }
  ibv_wc& first() { return ring_[0]; }

  // Of the completions that were just polled, those remain for which wanted(completion) is true. Returns their number.
  template <class Wanted>
  [[gnu::always_inline]] uint32_t keep(int polled, Wanted wanted) {
    assert(polled >= 0 && static_cast<uint32_t>(polled) <= capacity() - count());
    ibv_wc* const batch = &ring_[head_ & mask_];
    int kept = 0;
    for (int i = 0; i < polled; ++i) {
      if (!wanted(batch[i])) [[unlikely]]
        continue;
      if (kept != i) [[unlikely]]
        batch[kept] = batch[i];
      ++kept;
    }
    head_ += static_cast<uint32_t>(kept);
    assert(count() <= capacity());
    return static_cast<uint32_t>(kept);
  }

  // Drops the waiting completions for which unwanted(completion) is true.
  template <class Unwanted>
  void remove_if(Unwanted unwanted) {
    uint32_t kept = tail_;
    for (uint32_t i = tail_; i != head_; ++i) {
      const ibv_wc completion = ring_[i & mask_];
      if (!unwanted(completion)) ring_[kept++ & mask_] = completion;
    }
    head_ = kept;
  }

 private:
  bool resize(uint32_t capacity) {
    assert(std::has_single_bit(capacity) && count() <= capacity);
    std::unique_ptr<ibv_wc[]> larger(new (std::nothrow) ibv_wc[capacity]);
    if (!larger) return false;
    for (uint32_t i = tail_; i != head_; ++i) larger[i & (capacity - 1)] = ring_[i & mask_];
    ring_ = std::move(larger);
    mask_ = capacity - 1;
    return true;
  }

  std::unique_ptr<ibv_wc[]> ring_;
  uint32_t mask_ = 0;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace dapple::udapl
