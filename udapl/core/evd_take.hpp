// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// How events leave an EVD: from the CQ through the ring of pending completions straight to where the consumer wants
// them.
#pragma once

#include <algorithm>
#include <mutex>

#include "udapl/core/cookie_ring.hpp"
#include "udapl/core/device_order.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"

namespace dapple::dat {

// The sink of who wants Events.
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

// Whether it is a success that only needs to be reported.
inline bool Evd::is_plain(const ibv_wc& completion, const Cookie& cookie) const {
  if (completion.status != IBV_WC_SUCCESS || !cookie.plain) [[unlikely]]
    return false;
  return cookie.operation != DtoOperation::kReceive || !(completion.wc_flags & unusual_wc_flags_);
}

template <class Sink>
[[gnu::always_inline]] inline void Evd::report_plain(const ibv_wc& completion, const Cookie& cookie, Sink sink) {
  if (cookie.operation == DtoOperation::kReceive) {
    cookie.ep->counters().add_with_bytes(EpCounter::kRecv, completion.byte_len);
    sink.completion(cookie, completion.byte_len);
  } else {
    sink.completion(cookie, cookie.length);
  }
}

// The first half of refill() when nothing is pending: a batch at the ring's start, where there is always room for one.
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
[[gnu::noinline]] bool Evd::pop_unusual(Sink sink) {
  Event event;
  if (!pop(event)) return false;
  sink(event);
  return true;
}

// refill() when nothing is pending; but a plain completion that comes alone goes to the sink at once, and is never
// pending. It is always one that may wake somebody.
template <class Sink>
[[gnu::always_inline]] inline Evd::Refilled Evd::refill_or_pop(Sink sink) {
  const int count = poll_empty();
  if (count == 0) return Refilled::kNothing;
  if (count == 1) [[likely]] {
    const ibv_wc& only = pending_[0];
    const Cookie& cookie = *reinterpret_cast<const Cookie*>(only.wr_id);
    taken_from_device(&cookie);
    if (is_plain(only, cookie)) [[likely]] {
      ++signals_;
      report_plain(only, cookie, sink);
      cookie.ep->plain_completed_and_delivered(cookie);
      return Refilled::kPopped;
    }
  }
  return accept_polled(count) ? Refilled::kPending : Refilled::kNothing;
}

template <class Sink>
[[gnu::always_inline]] inline bool Evd::pop_to(Sink sink) {
  if (software_.any()) [[unlikely]]
    return pop_unusual(sink);
  if (pending_head_ == pending_tail_) {
    const Refilled refilled = refill_or_pop(sink);
    if (refilled != Refilled::kPending) [[likely]]
      return refilled == Refilled::kPopped;
  }
  const ibv_wc& completion = pending_[pending_tail_ & pending_mask_];
  const Cookie& cookie = *reinterpret_cast<const Cookie*>(completion.wr_id);
  if (!cookie.plain) [[unlikely]]
    return pop_unusual(sink);
  ++pending_tail_;
  report_plain(completion, cookie, sink);
  cookie.ep->plain_delivered(cookie);
  return true;
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::dequeue_unlocked(Sink sink) {
  if (pop_to(sink)) [[likely]] {
    counters_.add(EvdCounter::kDequeueFound);
    return {};
  }
  counters_.add(EvdCounter::kDequeueNotFound);
  return cq_broken() ? fail(Type::kInternalError) : fail(Type::kQueueEmpty);
}

template <class Sink>
[[gnu::noinline]] Result<> Evd::dequeue_locked(Sink sink) {
  std::lock_guard guard(data_mutex_);
  return dequeue_unlocked(sink);
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::dequeue_to(Sink sink) {
  if (has_waiter()) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  return data_mutex_.enabled() ? dequeue_locked(sink) : dequeue_unlocked(sink);
}

inline void Evd::leave_wait(uint32_t more) {
  if (cno_.load(std::memory_order_seq_cst)) [[unlikely]] {
    // What comes from now on is the CNO's to tell.
    waiter_.store(Waiter::kLeaving, std::memory_order_seq_cst);
    resume_cno(more);
  }
  waiter_.store(Waiter::kNone, std::memory_order_release);
}

// The waiter, from its first look on.
template <class Sink>
[[gnu::noinline]] Result<> Evd::wait_longer(uint32_t timeout_us, uint32_t threshold, std::optional<uint32_t> looked_at,
                                            Sink sink, uint32_t& more) {
  const Taker taker{&sink, [](Evd& evd, void* where) { return evd.pop_to(*static_cast<Sink*>(where)); },
                    [](Evd& evd, void* where) { return evd.refill_or_pop(*static_cast<Sink*>(where)); }};
  const auto result = wait_for_events(timeout_us, threshold, looked_at, taker, more);
  leave_wait(more);
  return result;
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::wait_to(uint32_t timeout_us, uint32_t threshold, Sink sink,
                                                    uint32_t& more) {
  more = 0;
  if (threshold < 1 || threshold > qlen()) [[unlikely]]
    return fail(Type::kInvalidParameter, Subtype::kArg3);
  if (!waitable()) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdUnwaitable);
  Waiter nobody = Waiter::kNone;
  if (!waiter_.compare_exchange_strong(nobody, Waiter::kWaiting)) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  counters_.add(EvdCounter::kWait);
  // What is there when the call begins is taken without a look at the clock.
  std::optional<uint32_t> looked_at;
  if (threshold == 1 && !data_mutex_.enabled() && !aborted_.load(std::memory_order_seq_cst)) [[likely]] {
    looked_at = signals_;
    if (pop_to(sink)) {
      more = available();
      leave_wait(more);
      return {};
    }
  }
  return wait_longer(timeout_us, threshold, looked_at, sink, more);
}

}  // namespace dapple::dat
