// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations on a list of tags that a program has posted and does not know to be done: NICs have a queue of them.
// An operation is done at its post, and the program knows it when it polls its completion, or that of a later one.
#pragma once

#include <errno.h>
#include <stdint.h>

#include <bit>
#include <cassert>

#include "provider/soft/objects/queues/completion_queue.hpp"
#include "provider/soft/objects/queues/queue_allocator.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxTagOperations = 16384;

// Its user has a lock.
class OperationQueue {
 public:
  // 0, EINVAL for a depth of 0 or beyond kMaxTagOperations, or ENOMEM.
  int initialize(uint32_t depth) {
    if (depth == 0 || depth > kMaxTagOperations) return EINVAL;
    const uint32_t room = std::bit_ceil(depth);
    signaled_ = make_queue_array<Signaled>(room, QueueMemory::kSends, nullptr);
    if (signaled_ == nullptr) return ENOMEM;
    depth_ = depth;
    mask_ = room - 1;
    return 0;
  }
  uint32_t depth() const { return depth_; }

  // False if there is no room for one more. `queue` gets the completions of the operations.
  bool has_room(const CompletionQueue& queue) {
    if (posted_ - known_ < depth_) return true;
    forget_polled(queue);
    assert_consistent();
    return posted_ - known_ < depth_;
  }
  // An operation is done. Its completion, if it has one, is in the queue.
  void add(const CompletionQueue& queue, bool is_signaled) {
    ++posted_;
    if (is_signaled) signaled_[tail_++ & mask_] = {queue.taken() + queue.count(), posted_};
    assert_consistent();
  }

 private:
  struct Signaled {
    uint32_t end;     // the completions that the program has polled when it knows of this one, modulo 2^32
    uint32_t posted;  // the operations up to this one
  };

  void forget_polled(const CompletionQueue& queue) {
    // A queue pair's reset may have dropped completions before this one. None is left in an empty queue.
    const bool is_empty = queue.empty();
    const uint32_t taken = queue.taken();
    for (; head_ != tail_; ++head_) {
      const Signaled& oldest = signaled_[head_ & mask_];
      if (!is_empty && static_cast<int32_t>(taken - oldest.end) < 0) return;
      known_ = oldest.posted;
    }
  }
  void assert_consistent() const { assert(posted_ - known_ <= depth_ && tail_ - head_ <= posted_ - known_); }

  QueueArray<Signaled> signaled_;
  uint32_t depth_ = 0;
  uint32_t mask_ = 0;
  uint32_t posted_ = 0;  // modulo 2^32, as the other counts
  uint32_t known_ = 0;   // of them
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace dapple::soft
