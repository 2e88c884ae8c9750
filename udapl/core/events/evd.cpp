// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/events/evd.hpp"

#include <sched.h>

#include <algorithm>
#include <cassert>

#include "udapl/core/arena.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/connection/cr.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/evd_take.hpp"
#include "udapl/core/events/event_fd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/queue/device_order.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

DtoStatus to_dto_status(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return DtoStatus::kSuccess;
    case IBV_WC_WR_FLUSH_ERR:
      return DtoStatus::kFlushed;
    case IBV_WC_LOC_LEN_ERR:
      return DtoStatus::kLocalLength;
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
      return DtoStatus::kLocalEp;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return DtoStatus::kLocalProtection;
    case IBV_WC_BAD_RESP_ERR:
      return DtoStatus::kBadResponse;
    case IBV_WC_REM_ACCESS_ERR:
      return DtoStatus::kRemoteAccess;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return DtoStatus::kRemoteResponder;
    case IBV_WC_MW_BIND_ERR:
      return DtoStatus::kRmrOperationFailed;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return DtoStatus::kReceiverNotReady;
    default:
      return DtoStatus::kTransport;
  }
}

bool invalidates(const ibv_wc& completion, const WorkRequest& request) {
  if (completion.status != IBV_WC_SUCCESS || request.operation != DtoOperation::kReceive) return false;
  if (request.ep->is_datagrams()) return false;
  return completion.opcode == IBV_WC_RECV && (completion.wc_flags & request.ep->ia().rules().invalidation_flags);
}

}  // namespace

Evd::Evd(Ia& ia, uint32_t qlen, uint32_t streams)
    : Object(ia.tables().live, kKind, &ia),
      qlen_(qlen),
      streams_(streams),
      software_(has_software_events() ? qlen : 0),
      spin_ns_(0) {}

Result<Evd*> Evd::create(Ia& ia, uint32_t min_qlen, uint32_t streams) {
  Evd* evd = arena<Evd>().create(ia, min_qlen, streams);
  ia.adopt(*evd);
  if (auto opened = evd->open_queues(min_qlen); !opened) {
    ia.destroy(*evd);
    return tl::unexpected(opened.error());
  }
  return evd;
}

Result<> Evd::open_queues(uint32_t min_qlen) {
  if (!(streams_ & (kEvdDto | kEvdRmrBind))) return {};

  assert(!cq_ && completions_.empty());
  slow_wc_flags_ = IBV_WC_WITH_IMM | ia().rules().invalidation_flags;
  const auto channel = open_channel();
  if (!channel) return tl::unexpected(channel.error());
  errno = ENOSPC;  // the default meaning, for example from libsiw in a process with 144 queues
  cq_.reset(ibv_create_cq(ia().context(), entries_for(min_qlen), this, *channel, 0));
  if (!cq_) return ia().refused_queue(errno);
  spare_ = spare_for(*cq_, min_qlen);
  working_cq_.store(cq_.get(), std::memory_order_relaxed);
  if (!completions_.open()) return fail(Type::kInsufficientResources, Subtype::kMemory);
  return {};
}

// The EVD has its own channel, which a sleeping thread reads itself. EVDs beyond this number use the shared channel.
Result<ibv_comp_channel*> Evd::open_channel() {
  constexpr uint32_t kMaxOwn = 256;  // of the 1,024 descriptors that a process may open by default
  if (ia().num_channels() >= kMaxOwn) return ConnectionManager::instance().shared_channel(ia().context());
  channel_.reset(ibv_create_comp_channel(ia().context()));
  if (!channel_) return fail_errno(errno);
  ia().count_channel(1);
  if (!make_non_blocking(channel_->fd)) return fail_errno(errno);
  return channel_.get();
}

Evd::~Evd() {
  if (channel_) ia().count_channel(-1);
}

int Evd::entries_for(uint32_t min_qlen) const {
  const uint32_t wanted = min_qlen + kSpare + to_flush_.load(std::memory_order_relaxed);
  return static_cast<int>(std::max(min_qlen, std::min<uint32_t>(wanted, ia().device().max_cqe)));
}

int32_t Evd::spare_for(const ibv_cq& cq, uint32_t min_qlen) {
  return std::clamp(cq.cqe - static_cast<int32_t>(min_qlen), 1, static_cast<int32_t>(kSpare));
}

bool Evd::take_spare() {
  int32_t left = spare_.load(std::memory_order_relaxed);
  while (left > 0) {
    if (spare_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

Result<> Evd::allow_threshold(uint32_t threshold) {
  if (threshold < 1) return refuse(Subtype::kThreshold, "it must be above 0");
  if (threshold > qlen()) return refuse_above(Subtype::kThreshold, qlen());
  if (!cq_) return {};
  std::lock_guard guard(data_mutex_);
  while (completions_.capacity() <= threshold) {
    if (!completions_.grow(most_completions())) return fail(Type::kInsufficientResources, Subtype::kMemory);
  }
  return {};
}

Result<> Evd::empty_cq() {
  if (!cq_) return {};
  std::lock_guard guard(data_mutex_);
  while (complete_batch()) {
  }
  if (completions_.full()) return fail(Type::kInsufficientResources, Subtype::kMemory);
  return {};
}

void Evd::configure(EvdConfig config) {
  assert(can_configure(config, 1));
  ++configured_;
  config_ = config;
  choose_notifications();
}

void Evd::unconfigure() {
  assert(configured_ > 0);
  if (--configured_ != 0) return;
  config_ = EvdConfig::kNotify;
  choose_notifications();
}

void Evd::add_requester() {
  ++requesters_;
  choose_notifications();
}

void Evd::drop_requester() {
  assert(requesters_ > 0);
  --requesters_;
  choose_notifications();
}

// A CQ that is armed for solicited events does not notify of requests. On some devices it does not notify of solicited
// receives either; there each receive wakes.
void Evd::choose_notifications() {
  const bool solicited =
      config_ == EvdConfig::kSolicited && requesters_ == 0 && ia().rules().notifies_of_solicited_receives;
  // The CQ may still be armed for solicited events only.
  if (solicited_only_.exchange(solicited, std::memory_order_seq_cst) && !solicited) serve_notification();
}

Result<> Evd::free(Evd& evd) {
  if (evd.in_use()) return fail(Type::kInvalidState, Subtype::kEvdInUse);
  if (evd.has_waiter()) return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  if (evd.cq_) {
    const bool enabled = evd.enabled();
    (void)evd.set_enabled(false);  // the CNO must not look at the CQ meanwhile
    // Destroying a CQ blocks until its notifications are acknowledged.
    ibv_ack_cq_events(evd.cq_.get(), evd.unacknowledged_);
    evd.unacknowledged_ = 0;
    if (int error = verbs::destroy(evd.cq_)) {
      (void)evd.set_enabled(enabled);
      return fail_errno(error);
    }
    evd.break_cq();
  }
  evd.leave_cno();
  // No other code knows of a request that was not dequeued.
  for (Event event; evd.software_.pop(event);) {
    if (data_of(event.kind) == EventData::kCr) (void)Cr::free(*event.cr.cr);
  }
  evd.ia().destroy(evd);
  return {};
}

bool Evd::post(Event event) {
  event.evd = this;
  return stored(software_.push(event));
}

// The lock is held until the event is stored: from then on, each delivered completion counts.
bool Evd::post_after_completions(Event event) {
  event.evd = this;
  std::unique_lock guard(data_mutex_);
  while (complete_batch()) {
  }
  event.after = delivered_ + completions_.count();
  const bool fits = software_.push(event);
  guard.unlock();
  return stored(fits);
}

bool Evd::stored(bool fits) {
  counters_.add(EvdCounter::kConnectionCallback);
  if (fits) {
    notify();
  } else {
    ia().report_evd_overflow(*this);
  }
  return fits;
}

Result<> Evd::post_software(void* pointer) {
  if (!has(kEvdSoftware)) return refuse(Subtype::kEvd, "the EVD lacks DAT_EVD_SOFTWARE_FLAG");
  Event event{};
  event.kind = EventKind::kSoftware;
  event.evd = this;
  event.software = pointer;
  if (!software_.push(event)) return fail(Type::kQueueFull);
  notify();
  return {};
}

// These are out of line so that the usual path spends no registers on them.
void Evd::break_cq() {
  working_cq_.store(nullptr, std::memory_order_relaxed);
}

Error Evd::finish_empty_dequeue() {
  counters_.add(EvdCounter::kDequeueNotFound);
  const Error why{cq_broken() ? Type::kInternalError : Type::kQueueEmpty};
  data_mutex_.unlock();
  return why;
}

bool Evd::deliver_next(Event& out) {
  if (software_.urgent()) flush_rings();
  if (software_.count() && software_.pop(out, completions_.empty() ? UINT64_MAX : delivered_)) return true;
  if (completions_.empty() && !complete_batch()) return false;
  report(completions_.front(), out);
  completions_.pop_front();
  ++delivered_;
  return true;
}

// True if the consumer will see this completion.
[[gnu::always_inline]] inline bool Evd::complete(ibv_wc& completion) {
  if (has_no_request(completion)) [[unlikely]]
    return false;
  WorkRequest& request = request_of(completion);
  taken_from_device(&request);
  if (!is_fast(completion, request)) [[unlikely]]
    return complete_slow(completion, request);
  ++signals_;
  request.ep->completed_fast(request);
  return true;
}

bool Evd::keep_batch(int count) {
  const uint32_t kept = completions_.keep(count, [this](ibv_wc& completion) { return complete(completion); });
  return kept != 0 || complete_batch();
}

bool Evd::complete_batch() {
  if (completions_.empty()) return keep_polled(poll_into_empty());
  if (completions_.full() && !completions_.grow(most_completions())) return false;
  return keep_polled(completions_.poll([this](ibv_wc* out, int capacity) { return poll_cq(out, capacity); }));
}

bool Evd::complete_slow(const ibv_wc& completion, WorkRequest& request) {
  request.fast = false;  // makes report() check all of it
  if (!request.srq && request.ep->flush_link_of(request).flushed) return false;
  assert(request.srq || request.ep);
  // From here on the completion has its EP.
  if (request.srq) request.srq->completed(request, completion.qp_num, completion.status == IBV_WC_SUCCESS);
  const bool delivers =
      (!request.suppressed || completion.status != IBV_WC_SUCCESS) && request.operation != DtoOperation::kInvalidate;
  if (invalidates(completion, request)) ia().windows().invalidated(completion.invalidated_rkey);
  request.ep->completed(request, completion.status, delivers);
  if (delivers && (!request.unsignalled || completion.status != IBV_WC_SUCCESS)) ++signals_;
  return delivers;
}

void Evd::report(const ibv_wc& completion, Event& out) {
  const WorkRequest& request = request_of(completion);
  // The consumer never sees an invalidation.
  assert(request.ep && request.operation != DtoOperation::kInvalidate);
  const bool success = completion.status == IBV_WC_SUCCESS;
  if (request.operation == DtoOperation::kBind) [[unlikely]] {
    out.kind = EventKind::kBindCompletion;
    out.evd = this;
    // Every error status of a bind means that the bind failed.
    const bool refused = !success && completion.status != IBV_WC_WR_FLUSH_ERR;
    out.bind = {request.window, request.cookie,
                refused ? DtoStatus::kRmrOperationFailed : to_dto_status(completion.status)};
    return request.ep->delivered(request);
  }
  out.kind = EventKind::kDtoCompletion;
  out.evd = this;
  out.dto.ep = request.ep;
  out.dto.user_cookie = request.cookie;
  out.dto.status = to_dto_status(completion.status);
  out.dto.operation = request.operation;
  out.dto.length = 0;
  out.dto.immediate = 0;
  out.dto.rmr_context = 0;
  if (success && request.operation != DtoOperation::kReceive) out.dto.length = request.length;
  if (request.operation == DtoOperation::kReceive && request.ep->is_datagrams()) [[unlikely]] {
    out.dto.operation = DtoOperation::kReceiveUd;
    if (success) {
      out.dto.length = completion.byte_len;
      request.ep->counters().add_with_bytes(EpCounter::kRecvUd, out.dto.length);
    }
  } else if (success && request.operation == DtoOperation::kReceive) {
    out.dto.length = completion.byte_len;
    if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      out.dto.operation = DtoOperation::kReceiveImmed;
      out.dto.immediate = completion.imm_data;
    } else if (invalidates(completion, request)) {
      out.dto.operation = DtoOperation::kReceiveWithInvalidate;
      out.dto.rmr_context = completion.invalidated_rkey;
    }
    const bool immediate = out.dto.operation == DtoOperation::kReceiveImmed;
    request.ep->counters().add_with_bytes(immediate ? EpCounter::kRecvRdmaImm : EpCounter::kRecv, out.dto.length);
  }
  request.ep->delivered(request);
}

void Evd::reap() {
  std::lock_guard guard(data_mutex_);
  if (software_.urgent()) flush_rings();
  while (completions_.count() < qlen() && complete_batch()) {
  }
}

void Evd::forget_completions(Ep& ep) {
  std::lock_guard guard(data_mutex_);
  for (FlushLink* link : ep.flush_links()) unflushed_.remove(*link);
  while (complete_batch()) {
  }
  // Completions that cannot be taken off the CQ must never be dereferenced, so the CQ is not used again.
  if (completions_.full()) break_cq();
  completions_.remove_if([&ep](const ibv_wc& completion) {
    const auto& request = request_of(completion);
    if (request.ep != &ep) return false;
    if (request.srq) request.srq->dropped(request);  // the queue lives on
    return true;
  });
}

void Evd::forget(Ep& ep) {
  forget_completions(ep);
  forget_reports(ep);
}

void Evd::forget_reports(const Ep& ep) {
  forget_datagrams(ep);
  std::lock_guard guard(data_mutex_);
  software_.remove_if([&ep](const Event& event) {
    return data_of(event.kind) == EventData::kConnection && event.connection.ep == &ep;
  });
}

void Evd::forget_datagrams(const Ep& ep) {
  // A thread that has taken such an event has told the consumer before it releases this lock.
  std::lock_guard guard(data_mutex_);
  software_.remove_if(
      [&ep](const Event& event) { return data_of(event.kind) == EventData::kDatagrams && event.datagrams.ep == &ep; });
}

void Evd::forget_errors(const Object& object) {
  software_.remove_if([&object](const Event& event) {
    return data_of(event.kind) == EventData::kAsync && event.async.object == &object;
  });
}

void Evd::set_waitable(bool waitable) {
  uint32_t before = unwaitable_.load(std::memory_order_relaxed);
  while (!unwaitable_.compare_exchange_weak(before, waitable ? before & ~1U : (before | 1) + 2)) {
  }
  if (!waitable) wake();
}

void Evd::abort() {
  aborted_.store(true, std::memory_order_seq_cst);
  while (has_waiter()) {
    wake();
    sched_yield();
  }
}

void Evd::flush_later(FlushLink& link) {
  unflushed_.add(link);
  software_.set_urgent(true);
  notify();
}

void Evd::flush_rings() {
  software_.set_urgent(false);
  while (complete_batch()) {
  }
  // Without room in the ring the CQ may hold more completions. The flush continues when some have been delivered.
  if (completions_.full()) return software_.set_urgent(true);
  while (FlushLink* const link = unflushed_.take()) {
    WorkRequestRing& ring = link->ring;
    link->flushed = true;
    ring.for_each_incomplete([&](WorkRequest& request) {
      if (completions_.full()) return false;
      // We assume that a suppressed request on a connection has succeeded.
      const bool delivers = !request.suppressed;
      request.fast = false;
      request.ep->completed(request, IBV_WC_WR_FLUSH_ERR, delivers);
      if (!delivers) return true;
      ibv_wc completion{};
      completion.wr_id = wr_id_of(request);
      completion.status = IBV_WC_WR_FLUSH_ERR;
      completions_.push_back(completion);
      ++signals_;
      return true;
    });
    if (completions_.full()) {
      unflushed_.add(*link);
      return software_.set_urgent(true);
    }
  }
}

// Called after an event was stored. A waiter that is awake looks once more before it sleeps or leaves; if nothing is
// left then, the waiter has taken the event.
void Evd::notify() {
  wake();
  if (cno_.load(std::memory_order_seq_cst) && !waited_on() && software_.any()) [[unlikely]]
    trigger_cno();
}

void Evd::wake() {
  if (!sleeping_.load(std::memory_order_seq_cst)) return;
  if (channel_) {
    raise(wake_fd_);
  } else {
    wake_up_.raise();
  }
}

}  // namespace dapple::udapl
