// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The path of events out of an EVD: from the CQ through the ring of pending completions directly to the consumer's
// memory.
#pragma once

#include <algorithm>
#include <mutex>

#include "udapl/core/cookie_ring.hpp"
#include "udapl/core/device_order.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"

namespace dapple::udapl {

// The sink of callers that want an Event.
struct EventSink {
  Evd& evd;
  Event& out;
  void operator()(const Event& event) const { out = event; }
  void completion(const Cookie& cookie, uint64_t length) const {
    out.kind = EventKind::kDtoCompletion;
    out.evd = &evd;
    out.dto = {cookie.ep, cookie.user_cookie, length, 0, DtoStatus::kSuccess, cookie.operation, 0};
  }
};

// True for a success that only needs to be reported.
inline bool Evd::is_fast(const ibv_wc& completion, const Cookie& cookie) const {
  if (completion.status != IBV_WC_SUCCESS || !cookie.fast) [[unlikely]]
    return false;
  return cookie.operation != DtoOperation::kReceive || !(completion.wc_flags & slow_wc_flags_);
}

template <class Sink>
[[gnu::always_inline]] inline void Evd::report_fast(const ibv_wc& completion, const Cookie& cookie, Sink sink) {
  if (cookie.operation == DtoOperation::kReceive) {
    const uint32_t length = completion.byte_len;
    cookie.ep->counters().add_with_bytes(EpCounter::kRecv, length);
    sink.completion(cookie, length);
  } else {
    sink.completion(cookie, cookie.length);
  }
}

// The first half of refill() when nothing is pending: polls a batch into the ring's start, where there is always room
// for one.
[[gnu::always_inline]] inline int Evd::poll_empty() {
  ibv_cq* const cq = working_cq_.load(std::memory_order_relaxed);
  if (!cq) [[unlikely]]
    return 0;
  pending_head_ = pending_tail_ = 0;
  const int count = verbs::poll(cq, pending_.get(), kBatch);
  if (count > 0) [[likely]] {
    counters_.add(EvdCounter::kPollFound);
    return count;
  }
  counters_.add(EvdCounter::kPollNotFound);
  if (count < 0) [[unlikely]]
    break_cq();
  return 0;
}

template <class Sink>
[[gnu::noinline]] bool Evd::pop_slow(Sink sink) {
  Event event;
  if (!pop(event)) return false;
  sink(event);
  return true;
}

// refill() when nothing is pending. A single fast completion goes directly to the sink and is never pending. Such a
// completion may always wake a thread.
template <class Sink>
[[gnu::always_inline]] inline Evd::Refilled Evd::refill_or_pop(Sink sink) {
  const int count = poll_empty();
  if (count == 0) return Refilled::kNothing;
  if (count == 1) [[likely]] {
    const ibv_wc& only = pending_[0];
    const Cookie& cookie = *reinterpret_cast<const Cookie*>(only.wr_id);
    taken_from_device(&cookie);
    if (is_fast(only, cookie)) [[likely]] {
      ++signals_;
      const Cookie done = cookie;  // a local copy: the compiler must assume that a store to the consumer's event
                                   // changes the member
      report_fast(only, done, sink);
      done.ep->completed_and_delivered_fast(done);
      return Refilled::kPopped;
    }
  }
  return accept_polled(count) ? Refilled::kPending : Refilled::kNothing;
}

template <class Sink>
[[gnu::always_inline]] inline bool Evd::pop_to(Sink sink) {
  if (software_.any()) [[unlikely]]
    return pop_slow(sink);
  if (pending_head_ == pending_tail_) {
    const Refilled refilled = refill_or_pop(sink);
    if (refilled != Refilled::kPending) [[likely]]
      return refilled == Refilled::kPopped;
  }
  const ibv_wc& completion = pending_[pending_tail_ & pending_mask_];
  const Cookie& cookie = *reinterpret_cast<const Cookie*>(completion.wr_id);
  if (!cookie.fast) [[unlikely]]
    return pop_slow(sink);
  ++pending_tail_;
  const Cookie done = cookie;
  report_fast(completion, done, sink);
  done.ep->delivered_fast(done);
  return true;
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::dequeue_to(Sink sink) {
  if (has_waiter()) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  // There is no guard object, which would cost more than the lock. Nothing here throws or can be cancelled.
  data_mutex_.lock();
  if (pop_to(sink)) [[likely]] {
    counters_.add(EvdCounter::kDequeueFound);
    data_mutex_.unlock();
    return {};
  }
  return tl::unexpected(finish_empty_dequeue());
}

inline void Evd::leave_wait(uint32_t more) {
  // From now on the CNO reports events: a present CNO is notified of waiting events, and a later CNO finds no waiter.
  // So this is set before the check.
  waiter_.store(Waiter::kLeaving, std::memory_order_seq_cst);
  if (cno_.load(std::memory_order_seq_cst)) [[unlikely]]
    resume_cno(more);
  waiter_.store(Waiter::kNone, std::memory_order_release);
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::wait_to(uint32_t timeout_us, uint32_t threshold, Sink sink,
                                                    uint32_t& more) {
  more = 0;
  if (threshold != 1) [[unlikely]] {
    if (auto allowed = allow_threshold(threshold); !allowed) return allowed;
  }
  if (!waitable()) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdUnwaitable);
  Waiter nobody = Waiter::kNone;
  if (!waiter_.compare_exchange_strong(nobody, Waiter::kWaiting)) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  counters_.add(EvdCounter::kWait);
  // Events that wait when the call begins are taken without reading the clock.
  uint32_t signals = 0;
  const uint32_t* looked_at = nullptr;
  if (threshold == 1 && !aborted_.load(std::memory_order_seq_cst)) [[likely]] {
    data_mutex_.lock();
    signals = signals_;
    if (pop_to(sink)) {
      more = available();
      data_mutex_.unlock();
      leave_wait(more);
      return {};
    }
    data_mutex_.unlock();
    looked_at = &signals;
  }
  Sink unhurried = sink;
  const Taker taker{&unhurried, [](Evd& evd, void* where) { return evd.pop_to(*static_cast<Sink*>(where)); },
                    [](Evd& evd, void* where) { return evd.refill_or_pop(*static_cast<Sink*>(where)); }};
  return wait_for_events(timeout_us, threshold, looked_at, taker, more);
}

}  // namespace dapple::udapl
