// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// How events leave an EVD: from the CQ through the ring of pending completions straight to where the consumer wants
// them.
#pragma once

#include <algorithm>
#include <mutex>

#include "udapl/core/cookie_ring.hpp"
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

// Whether the consumer will see this completion.
[[gnu::always_inline]] inline bool Evd::accept(ibv_wc& completion) {
  Cookie& cookie = *reinterpret_cast<Cookie*>(completion.wr_id);
  if (completion.status != IBV_WC_SUCCESS || !cookie.plain) [[unlikely]]
    return accept_unusual(completion, cookie);
  if (cookie.operation == DtoOperation::kReceive && (completion.wc_flags & unusual_wc_flags_)) [[unlikely]]
    return accept_unusual(completion, cookie);
  ++signals_;
  cookie.ep->plain_completed(cookie);
  return true;
}

// Moves one batch from the CQ to the ring of pending completions. A success nobody asked for is left out, so that what
// is pending is what the consumer will see.
[[gnu::always_inline]] inline bool Evd::refill_inline() {
  if (!cq_ || cq_broken_) return false;
  for (;;) {
    uint32_t at = 0;
    uint32_t room = kBatch;
    if (pending_head_ == pending_tail_) {
      // From the ring's start, where there is room for a whole batch.
      pending_head_ = pending_tail_ = 0;
    } else {
      at = pending_head_ & pending_mask_;
      room = std::min({kBatch, pending_mask_ + 1 - (pending_head_ - pending_tail_), pending_mask_ + 1 - at});
      if (room == 0) return false;
    }
    const int count = verbs::poll(cq_.get(), &pending_[at], static_cast<int>(room));
    if (count <= 0) {
      if (count < 0) cq_broken_ = true;
      return false;
    }
    ibv_wc* kept = &pending_[at];
    const ibv_wc* const end = kept + count;
    for (ibv_wc* completion = kept; completion != end; ++completion) {
      if (!accept(*completion)) continue;
      if (kept != completion) *kept = *completion;
      ++kept;
    }
    if (const auto added = static_cast<uint32_t>(kept - &pending_[at])) {
      pending_head_ += added;
      return true;
    }
  }
}

template <class Sink>
[[gnu::noinline]] bool Evd::pop_unusual(Sink sink) {
  Event event;
  if (!pop(event)) return false;
  sink(event);
  return true;
}

template <class Sink>
[[gnu::always_inline]] inline bool Evd::pop_to(Sink sink) {
  if (software_.count()) [[unlikely]]
    return pop_unusual(sink);
  if (pending_head_ == pending_tail_ && !refill_inline()) return false;
  const ibv_wc& completion = pending_[pending_tail_ & pending_mask_];
  const Cookie& cookie = *reinterpret_cast<const Cookie*>(completion.wr_id);
  if (!cookie.plain) [[unlikely]]
    return pop_unusual(sink);
  ++pending_tail_;
  if (cookie.operation == DtoOperation::kReceive) {
    cookie.ep->counters().add_with_bytes(EpCounter::kRecv, completion.byte_len);
    sink.completion(cookie, completion.byte_len);
  } else {
    sink.completion(cookie, cookie.length);
  }
  cookie.ep->plain_delivered(cookie);
  return true;
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::dequeue_to(Sink sink) {
  if (has_waiter()) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  std::lock_guard guard(data_mutex_);
  if (pop_to(sink)) [[likely]]
    return {};
  return cq_broken_ ? fail(Type::kInternalError) : fail(Type::kQueueEmpty);
}

template <class Sink>
[[gnu::noinline]] Result<> Evd::wait_longer(uint32_t timeout_us, uint32_t threshold, std::optional<uint32_t> looked_at,
                                            Sink sink, uint32_t& more) {
  Event event;
  auto result = wait_for_events(timeout_us, threshold, looked_at, event, more);
  leave_wait(more);
  if (result) sink(event);
  return result;
}

inline void Evd::leave_wait(uint32_t more) {
  if (cno_.load(std::memory_order_seq_cst)) [[unlikely]] {
    // What comes from now on is the CNO's to tell.
    waiter_.store(Waiter::kLeaving, std::memory_order_seq_cst);
    resume_cno(more);
  }
  waiter_.store(Waiter::kNone, std::memory_order_release);
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::wait_to(uint32_t timeout_us, uint32_t threshold, Sink sink,
                                                    uint32_t& more) {
  more = 0;
  if (threshold < 1 || threshold > qlen()) return fail(Type::kInvalidParameter, Subtype::kArg3);
  if (!waitable()) return fail(Type::kInvalidState, Subtype::kEvdUnwaitable);
  Waiter nobody = Waiter::kNone;
  if (!waiter_.compare_exchange_strong(nobody, Waiter::kWaiting)) {
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  }
  // What is there when the call begins is taken without a look at the clock.
  std::optional<uint32_t> signals;
  bool taken = false;
  if (threshold == 1 && !aborted_.load(std::memory_order_seq_cst)) [[likely]] {
    std::lock_guard guard(data_mutex_);
    signals = signals_;
    taken = pop_to(sink);
    if (taken) more = available();
  }
  if (!taken) [[unlikely]]
    return wait_longer(timeout_us, threshold, signals, sink, more);
  leave_wait(more);
  return {};
}

}  // namespace dapple::dat
