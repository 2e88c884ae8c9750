// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The path of completions out of an EVD: from the CQ, if necessary through the ring of waiting ones, to the consumer's
// memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <mutex>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/queue/device_order.hpp"
#include "udapl/core/queue/work_request_ring.hpp"

namespace dapple::udapl {

// True for a success that only needs to be reported.
inline bool Evd::is_fast(const ibv_wc& completion, const WorkRequest& request) const {
  if (completion.status != IBV_WC_SUCCESS || !request.fast) [[unlikely]]
    return false;
  return request.operation != DtoOperation::kReceive || !(completion.wc_flags & slow_wc_flags_);
}

template <class Sink>
[[gnu::always_inline]] inline void Evd::report_fast(const ibv_wc& completion, const WorkRequest& request, Sink sink) {
  if (request.operation == DtoOperation::kReceive) {
    const uint32_t length = completion.byte_len;
    request.ep->counters().add_with_bytes(EpCounter::kRecv, length);
    sink.completion(request, length);
  } else {
    sink.completion(request, request.length);
  }
}

// One call of ibv_poll_cq(). A failure looks like an empty CQ, which is broken from then on.
[[gnu::always_inline]] inline int Evd::poll_cq(ibv_wc* out, int capacity) {
  ibv_cq* const cq = working_cq_.load(std::memory_order_relaxed);
  if (!cq) [[unlikely]]
    return 0;
  const int count = verbs::poll(cq, out, capacity);
  assert(count <= capacity);
  if (count > 0) [[likely]] {
    counters_.add(EvdCounter::kPollFound);
    return count;
  }
  counters_.add(EvdCounter::kPollNotFound);
  if (count < 0) [[unlikely]]
    break_cq();
  return 0;
}

[[gnu::always_inline]] inline int Evd::poll_into_empty() {
  return completions_.poll_into_empty([this](ibv_wc* out, int capacity) { return poll_cq(out, capacity); });
}

template <class Sink>
[[gnu::noinline]] bool Evd::deliver_event_to(Sink sink) {
  Event event;
  if (!deliver_next(event)) return false;
  sink(event);
  return true;
}

// A single fast completion goes to the sink and never waits: to store it first would add 78 instructions to a wait that
// sleeps. Such a completion may always wake a thread.
template <class Sink>
[[gnu::always_inline]] inline Evd::Completed Evd::complete_batch_to(Sink sink) {
  const int count = poll_into_empty();
  if (count == 0) return Completed::kNothing;
  if (count == 1 && !has_no_request(completions_.first())) [[likely]] {
    const ibv_wc& only = completions_.first();
    const WorkRequest& request = request_of(only);
    taken_from_device(&request);
    if (is_fast(only, request)) [[likely]] {
      ++signals_;
      const WorkRequest done = request;  // a local copy: the compiler must assume that a store to the consumer's event
                                         // changes the member
      report_fast(only, done, sink);
      done.ep->completed_and_delivered_fast(done);
      return Completed::kDelivered;
    }
  }
  return keep_polled(count) ? Completed::kWaiting : Completed::kNothing;
}

template <class Sink>
[[gnu::always_inline]] inline bool Evd::deliver_next_to(Sink sink) {
  if (software_.any()) [[unlikely]]
    return deliver_event_to(sink);
  if (completions_.empty()) {
    const Completed completed = complete_batch_to(sink);
    if (completed != Completed::kWaiting) [[likely]]
      return completed == Completed::kDelivered;
  }
  const ibv_wc& completion = completions_.front();
  const WorkRequest& request = request_of(completion);
  if (!request.fast) [[unlikely]]
    return deliver_event_to(sink);
  completions_.pop_front();
  const WorkRequest done = request;
  report_fast(completion, done, sink);
  done.ep->delivered_fast(done);
  return true;
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::dequeue(Sink sink) {
  if (has_waiter()) [[unlikely]]
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  // There is no guard object, which would cost more than the lock. Nothing here throws or can be cancelled.
  data_mutex_.lock();
  if (deliver_next_to(sink)) [[likely]] {
    counters_.add(EvdCounter::kDequeueFound);
    data_mutex_.unlock();
    return {};
  }
  return tl::unexpected(finish_empty_dequeue());
}

inline void Evd::leave_wait(uint32_t more) {
  // From now on the CNO reports events: a present CNO is notified of waiting events, and a later CNO finds no waiter.
  // So this is set before the check.
  assert(waiter_.load(std::memory_order_relaxed) == Waiter::kWaiting);
  waiter_.store(Waiter::kLeaving, std::memory_order_seq_cst);
  if (cno_.load(std::memory_order_seq_cst)) [[unlikely]]
    resume_cno(more);
  waiter_.store(Waiter::kNone, std::memory_order_release);
}

template <class Sink>
[[gnu::always_inline]] inline Result<> Evd::wait(uint32_t timeout_us, uint32_t threshold, Sink sink, uint32_t& more) {
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
  std::optional<uint32_t> signals;
  if (threshold == 1 && !aborted_.load(std::memory_order_seq_cst)) [[likely]] {
    data_mutex_.lock();
    if (deliver_next_to(sink)) {
      more = available();
      data_mutex_.unlock();
      leave_wait(more);
      return {};
    }
    signals = signals_;
    data_mutex_.unlock();
  }
  Sink unhurried = sink;
  const ErasedSink erased{&unhurried,
                          [](Evd& evd, void* where) { return evd.deliver_next_to(*static_cast<Sink*>(where)); },
                          [](Evd& evd, void* where) { return evd.complete_batch_to(*static_cast<Sink*>(where)); }};
  return wait_for_events(timeout_us, threshold, signals, erased, more);
}

}  // namespace dapple::udapl
