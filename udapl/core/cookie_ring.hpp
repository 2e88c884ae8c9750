// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The record of each posted work request until its completion is delivered. A queue pair completes a queue's requests
// in order, so a ring is sufficient: retiring one request retires all earlier requests without a completion.
//
// A completion taken from the CQ finishes its request. If the consumer will see the completion, its cookie and all
// later cookies stay until delivery. Other cookies are removed as soon as no earlier cookie waits.
//
// Threads: one poster and one retirer at a time; the two may be different threads. Any thread may call count(), empty()
// and finished(). If a request completes before its poster calls push(), it is never in the ring.
#pragma once

#include "ibverbs-glue/verbs.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "udapl/core/event.hpp"

namespace dapple::udapl {

class Srq;

struct Cookie {
  uint64_t user_cookie;
  union {
    uint64_t length;  // bytes, over all segments
    Rmr* window;      // of kBind
  };
  Ep* ep;             // of a receive on a shared queue; set when it has completed
  Srq* srq;           // null: the request is in its EP's own ring, whose cookies leave this null
  uint32_t sequence;  // position in the ring's endless count
  DtoOperation operation;
  bool suppressed;   // a success is not delivered to the consumer
  bool unsignalled;  // a success wakes no thread
  bool spare;        // it takes one of its CQ's spare entries
  bool fast;         // a success takes the fast path: only reporting it and releasing the cookie are left to do
  uint16_t num_segments;

  void set_fast(uint64_t users, uint64_t bytes, Ep& of, DtoOperation what) {
    user_cookie = users;
    length = bytes;
    ep = &of;
    operation = what;
    suppressed = false;
    unsignalled = false;
    spare = false;
    fast = true;
  }
};

class CookieRing {
 public:
  // keep_segments > 0 also remembers up to that many segments of each request, for maintenance at completion. Throws
  // std::bad_alloc.
  CookieRing(uint32_t capacity, uint32_t keep_segments)
      : capacity_(capacity),
        keep_segments_(keep_segments),
        mask_(std::bit_ceil(capacity > 0 ? capacity : 1U) - 1),
        cookies_(std::make_unique<Cookie[]>(mask_ + 1)),
        segments_(keep_segments ? std::make_unique<ibv_sge[]>(size_t{keep_segments} * (mask_ + 1)) : nullptr) {}

  // For the poster only.
  bool full() const { return head() - tail() >= capacity_; }
  // The number of requests posted and not delivered.
  uint32_t count() const { return ahead(head(), tail()); }
  bool empty() const { return count() == 0; }

  // The cookie that the next request will use; the request does not count before push().
  Cookie& next() {
    Cookie& cookie = cookies_[head() & mask_];
    cookie.sequence = head();
    return cookie;
  }
  void push() { head_.store(head() + 1, std::memory_order_release); }
  // next() and push() in one call; null when the ring is full.
  Cookie* claim() {
    const uint32_t sequence = head();
    if (sequence - tail() >= capacity_) [[unlikely]]
      return nullptr;
    Cookie* cookie = &cookies_[sequence & mask_];
    cookie->sequence = sequence;
    head_.store(sequence + 1, std::memory_order_relaxed);
    return cookie;
  }
  // Undoes the last push().
  void pop() { head_.store(head() - 1, std::memory_order_relaxed); }
  uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  // For threads other than the poster: the end of the cookies that they may read.
  uint32_t posted() const { return head_.load(std::memory_order_acquire); }

  // Forgets everything; no thread may hold a cookie.
  void clear() {
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_release);
    finished_.store(0, std::memory_order_release);
    undelivered_ = 0;
  }

  // Takes the memory of another ring, which is empty; no thread may hold a cookie of either.
  void replace(CookieRing&& other) {
    capacity_ = other.capacity_;
    keep_segments_ = other.keep_segments_;
    mask_ = other.mask_;
    cookies_ = std::move(other.cookies_);
    segments_ = std::move(other.segments_);
    clear();
  }

  // A completion was taken off the CQ; `delivers` tells whether deliver() will follow. Both functions return the
  // sequence up to which cookies may be released now.
  uint32_t finish(const Cookie& cookie, bool delivers) {
    if (delivers) {
      finish_delivering(cookie);
      return tail();
    }
    finished_.store(cookie.sequence + 1, std::memory_order_release);
    return undelivered_ ? tail() : cookie.sequence + 1;
  }
  // finish(cookie, true) without its result, which is tail(): no further cookie may be released.
  void finish_delivering(const Cookie& cookie) {
    finished_.store(cookie.sequence + 1, std::memory_order_release);
    ++undelivered_;
  }
  // finish_delivering(), deliver() and retire in one call, for when no other completion waits for delivery.
  void finish_delivered(const Cookie& cookie) {
    const uint32_t end = cookie.sequence + 1;
    finished_.store(end, std::memory_order_release);
    retire_to(end);
  }
  uint32_t deliver(const Cookie& cookie) { return --undelivered_ ? cookie.sequence + 1 : finished(); }
  // Releases this cookie and all before it.
  void retire(const Cookie& last) { retire_to(last.sequence + 1); }
  void retire_to(uint32_t end) { tail_.store(end, std::memory_order_release); }

  uint32_t tail() const { return tail_.load(std::memory_order_acquire); }
  uint32_t finished() const { return finished_.load(std::memory_order_acquire); }
  // Calls visit(cookie) for every request that was posted and has not finished, oldest first, until visit returns
  // false.
  template <class Visit>
  void for_each_unfinished(Visit visit) {
    const uint32_t first = finished();
    const uint32_t left = ahead(posted(), first);
    for (uint32_t i = 0; i < left && visit(at(first + i)); ++i) {
    }
  }

  Cookie& at(uint32_t sequence) { return cookies_[sequence & mask_]; }
  std::span<ibv_sge> segments(const Cookie& cookie) {
    return {&segments_[size_t{cookie.sequence & mask_} * keep_segments_], keep_segments_};
  }

 private:
  // The distance by which one position is ahead of the other; 0 when it is behind.
  static uint32_t ahead(uint32_t position, uint32_t of) {
    const uint32_t distance = position - of;
    return static_cast<int32_t>(distance) > 0 ? distance : 0;
  }

  uint32_t capacity_;
  uint32_t keep_segments_;
  uint32_t mask_;
  uint32_t undelivered_ = 0;  // finished requests whose completions wait for the consumer
  std::atomic<uint32_t> head_ = 0;
  std::atomic<uint32_t> tail_ = 0;
  std::atomic<uint32_t> finished_ = 0;
  std::unique_ptr<Cookie[]> cookies_;
  std::unique_ptr<ibv_sge[]> segments_;
};

}  // namespace dapple::udapl
