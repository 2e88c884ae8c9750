// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The record of each work request that was posted to one of an endpoint's queues, until its place is free again.
//
// A request is posted, then completed (its completion was taken off the CQ), then delivered (the consumer has its
// event), then released. A queue pair completes a queue's requests in order, so a ring is sufficient. A request without
// a completion completes with the next one. A completed request that the consumer will not see is never delivered; it
// is released as soon as no earlier request waits for delivery.
//
// Threads: one thread at a time posts, and one completes, delivers and releases; the two may be different threads. Any
// thread may call count(), empty(), posted(), completed() and released(). If the device completes a request before its
// poster calls post(), the request is never in the ring.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/queue/dto_operation.hpp"

namespace dapple::udapl {

class Ep;
class Rmr;
class Srq;

// DAT_COMPLETION_FLAGS of a posted request.
enum CompletionFlag : uint32_t {
  kSuppress = 0x01,
  kSolicitedWait = 0x02,
  kUnsignalled = 0x04,
  kBarrierFence = 0x08,
  kEvdThreshold = 0x10,
  kAllCompletionFlags = 0x1f,
};

struct WorkRequest {
  uint64_t cookie;  // the consumer's
  union {
    uint64_t length;  // bytes, over all segments
    Rmr* window;      // of kBind
  };
  Ep* ep;             // of a receive on a shared queue; set when it has completed
  Srq* srq;           // null: the request is in its EP's own ring, whose requests leave this null
  uint32_t sequence;  // position in the ring's endless count
  DtoOperation operation;
  bool suppressed;   // a success is not delivered to the consumer
  bool unsignalled;  // a success wakes no thread
  bool spare;        // it takes one of its CQ's spare entries
  bool fast;         // a success takes the fast path: only reporting and releasing it are left to do
  uint16_t num_segments;

  // Fills in a request of an EP's own ring.
  void set(Ep& of, DtoOperation what, uint64_t users, uint64_t bytes, uint32_t flags, bool is_fast) {
    cookie = users;
    length = bytes;
    ep = &of;
    operation = what;
    suppressed = flags & kSuppress;
    unsignalled = flags & kUnsignalled;
    spare = false;
    fast = is_fast;
  }
};

// A request's address is its wr_id.
inline uint64_t wr_id_of(const WorkRequest& request) {
  return reinterpret_cast<uint64_t>(&request);
}
// siw may end a connection with a failed completion of its own, which belongs to no request (docs/siw.md).
inline bool has_no_request(const ibv_wc& completion) {
  return completion.status != IBV_WC_SUCCESS && completion.wr_id == 0;
}
// Not for a completion that has none.
inline WorkRequest& request_of(const ibv_wc& completion) {
  return *reinterpret_cast<WorkRequest*>(completion.wr_id);
}

class WorkRequestRing {
 public:
  // keep_segments > 0 also remembers up to that many segments of each request, for maintenance at completion. Throws
  // std::bad_alloc.
  WorkRequestRing(uint32_t capacity, uint32_t keep_segments)
      : capacity_(capacity),
        keep_segments_(keep_segments),
        mask_(std::bit_ceil(capacity > 0 ? capacity : 1U) - 1),
        requests_(std::make_unique<WorkRequest[]>(mask_ + 1)),
        segments_(keep_segments ? std::make_unique<ibv_sge[]>(size_t{keep_segments} * (mask_ + 1)) : nullptr) {}

  // The number of requests that were posted and are not released.
  uint32_t count() const { return distance(released(), posted()); }
  bool empty() const { return count() == 0; }
  // For the poster only.
  bool full() const { return own_posted() - released() >= capacity_; }

  // The ends of the requests in each state, in the ring's endless count.
  uint32_t posted() const { return posted_.load(std::memory_order_acquire); }
  uint32_t completed() const { return completed_.load(std::memory_order_acquire); }
  uint32_t released() const { return released_.load(std::memory_order_acquire); }

  // The next request to post; it does not count before post(). The ring must not be full.
  WorkRequest& next() {
    assert(!full());
    WorkRequest& request = requests_[own_posted() & mask_];
    request.sequence = own_posted();
    return request;
  }
  void post() {
    assert(distance(released(), own_posted()) < capacity_);
    posted_.store(own_posted() + 1, std::memory_order_release);
  }
  // next() and post() in one call; null when the ring is full.
  WorkRequest* post_next() {
    const uint32_t sequence = own_posted();
    if (sequence - released() >= capacity_) [[unlikely]]
      return nullptr;
    WorkRequest* request = &requests_[sequence & mask_];
    request->sequence = sequence;
    posted_.store(sequence + 1, std::memory_order_relaxed);
    return request;
  }
  // Undoes the last post(), because the device has refused the request.
  void withdraw() {
    assert(distance(completed(), own_posted()) > 0);
    posted_.store(own_posted() - 1, std::memory_order_relaxed);
  }

  // Posted to completed. `delivers` tells whether deliver() will follow. Both functions return the end of the requests
  // that may be released now.
  uint32_t complete(const WorkRequest& request, bool delivers) {
    if (delivers) {
      complete_for_delivery(request);
      return released();
    }
    complete_through(request);
    return undelivered_ ? released() : request.sequence + 1;
  }
  uint32_t deliver(const WorkRequest& request) {
    assert(undelivered_ > 0 && distance(request.sequence, completed()) > 0);
    return --undelivered_ ? request.sequence + 1 : completed();
  }
  // complete(request, true) without its result, which is released(): no further request may be released.
  void complete_for_delivery(const WorkRequest& request) {
    complete_through(request);
    ++undelivered_;
  }
  // complete(), deliver() and release_to() in one call, for when no other completion waits for delivery.
  void complete_and_deliver(const WorkRequest& request) {
    assert(undelivered_ == 0);
    complete_through(request);
    release_to(request.sequence + 1);
  }
  // Releases the requests before `end`.
  void release_to(uint32_t end) {
    assert(end == released() || (distance(released(), end) > 0 && distance(completed(), end) == 0));
    released_.store(end, std::memory_order_release);
  }

  // Calls visit(request) for every request that is posted and not completed, oldest first, until visit returns false.
  template <class Visit>
  void for_each_incomplete(Visit visit) {
    const uint32_t first = completed();
    const uint32_t left = distance(first, posted());
    for (uint32_t i = 0; i < left && visit(at(first + i)); ++i) {
    }
  }

  WorkRequest& at(uint32_t sequence) { return requests_[sequence & mask_]; }
  std::span<ibv_sge> segments(const WorkRequest& request) {
    return {&segments_[size_t{request.sequence & mask_} * keep_segments_], keep_segments_};
  }

  // Forgets everything; no thread may hold a request.
  void clear() {
    posted_.store(0, std::memory_order_relaxed);
    released_.store(0, std::memory_order_release);
    completed_.store(0, std::memory_order_release);
    undelivered_ = 0;
  }

  // Takes the memory of another ring, which is empty; no thread may hold a request of either.
  void replace(WorkRequestRing&& other) {
    assert(empty() && other.empty());
    capacity_ = other.capacity_;
    keep_segments_ = other.keep_segments_;
    mask_ = other.mask_;
    requests_ = std::move(other.requests_);
    segments_ = std::move(other.segments_);
    clear();
  }

 private:
  uint32_t own_posted() const { return posted_.load(std::memory_order_relaxed); }
  // From one position to another; 0 if the second is behind.
  static uint32_t distance(uint32_t from, uint32_t to) {
    const uint32_t distance = to - from;
    return static_cast<int32_t>(distance) > 0 ? distance : 0;
  }
  void complete_through(const WorkRequest& request) {
    assert(distance(completed(), request.sequence + 1) > 0);
    completed_.store(request.sequence + 1, std::memory_order_release);
  }

  uint32_t capacity_;
  uint32_t keep_segments_;
  uint32_t mask_;
  uint32_t undelivered_ = 0;  // completed requests whose completions wait for the consumer
  std::atomic<uint32_t> posted_ = 0;
  std::atomic<uint32_t> released_ = 0;
  std::atomic<uint32_t> completed_ = 0;
  std::unique_ptr<WorkRequest[]> requests_;
  std::unique_ptr<ibv_sge[]> segments_;
};

}  // namespace dapple::udapl
