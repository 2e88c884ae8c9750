// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Receive requests that wait for messages: a queue pair's own, or those that queue pairs share.
//
// post() and take() may run at the same time; the lock inside is a leaf. take() runs under a queue pair's lock, so it
// leaves the event of a shared queue's limit as a note for its caller, as in completion_queue.hpp.
#pragma once

#include <errno.h>
#include <stdint.h>

#include <atomic>
#include <cassert>
#include <memory>
#include <optional>
#include <span>

#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/objects/queues/queue_allocator.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxRequests = 16384;  // of a queue

class ReceiveQueue final : public roce::ReceiveSource {
 public:
  // 0; EINVAL beyond kMaxRequests or roce::kMaxSegments; ENOMEM. A depth of 0 makes a queue that takes nothing.
  // `allocator` lives longer than the queue, or is null.
  int initialize(uint32_t depth, uint32_t max_segments, const QueueAllocator* allocator = nullptr);
  uint32_t depth() const { return depth_.load(std::memory_order_relaxed); }
  uint32_t max_segments() const { return max_segments_; }

  // 0; ENOMEM if the queue is full; EINVAL if there are too many segments. Otherwise, under the lock, the mark of the
  // request's completion is make_mark().
  template <typename MakeMark>
  int post(uint64_t id, std::span<const roce::Segment> segments, MakeMark make_mark) {
    const BiasedLock lock(mutex_);
    if (segments.size() > max_segments_) return EINVAL;
    if (count_ == depth()) return ENOMEM;
    assert_consistent();
    const uint32_t at = (head_ + count_) & mask_;
    slots_[at] = {id, static_cast<uint32_t>(segments.size()), make_mark()};
    copy_segments(segments, &segments_[size_t{at} * max_segments_]);
    ++count_;
    return 0;
  }
  int post(uint64_t id, std::span<const roce::Segment> segments) {
    return post(id, segments, [] { return uint16_t{0}; });
  }
  bool take(roce::ReceiveRequest& request) override;
  // The request that take() would take now.
  bool peek(roce::ReceiveRequest& request);
  // The number of that request: requests are counted in the order in which they leave the queue.
  uint64_t next_number();
  // The number of requests that wait.
  uint32_t count();
  // Forgets all requests.
  void clear();

  // Also sets the limit if `limit` has a value. EINVAL: the depth is less than the number of waiting requests, or than
  // the limit; or as initialize().
  int resize(uint32_t depth, std::optional<uint32_t> limit = std::nullopt);

  // IBTA 10.2.9.3: a limit above 0 notes once that fewer requests than that are left, and is 0 again then. EINVAL: more
  // than the depth.
  int set_limit(uint32_t limit);
  uint32_t limit();
  bool has_limit_notice() const { return limit_notice_.load(std::memory_order_relaxed); }
  bool take_limit_notice() { return has_limit_notice() && limit_notice_.exchange(false, std::memory_order_acq_rel); }

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const {
    assert_held(mutex_);
    assert(count_ <= depth() && (depth() == 0 || depth() <= mask_ + 1) && head_ <= mask_);
    assert(limit_ <= depth());
  }
  void copy_first(roce::ReceiveRequest& request) const;

  struct Slot {
    uint64_t id;
    uint32_t segment_count;
    uint16_t mark;
  };

  BiasedMutex mutex_{LockRank::kReceiveQueue};
  std::atomic<uint32_t> depth_{0};  // changes under the lock
  uint32_t mask_ = 0;               // for the place of a request: there is room for a power of two
  uint32_t max_segments_ = 0;
  uint32_t head_ = 0;
  uint32_t count_ = 0;
  uint32_t limit_ = 0;
  uint64_t gone_ = 0;  // requests that have left the queue
  const QueueAllocator* allocator_ = nullptr;
  QueueArray<Slot> slots_;
  QueueArray<roce::Segment> segments_;  // max_segments_ for each slot
  std::atomic<bool> limit_notice_{false};
};

}  // namespace dapple::soft
