// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/evd.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <new>

#include "udapl/core/arena.hpp"
#include "udapl/core/connection_manager.hpp"
#include "udapl/core/cr.hpp"
#include "udapl/core/device_order.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd_take.hpp"
#include "udapl/core/event_fd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/srq.hpp"

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

// The flag of a receive whose Send has invalidated one of our windows.
unsigned int invalidation_flags(const Ia& ia) {
  constexpr unsigned int kKernelsBit = 1U << 2;
  // rxe passes the kernel's flags on. There this bit means a good IP checksum, which an RC queue pair never reports.
  return IBV_WC_WITH_INV | (ia.is_rxe() ? kKernelsBit : 0);
}

bool invalidates(const ibv_wc& completion, const Cookie& cookie) {
  if (completion.status != IBV_WC_SUCCESS || cookie.operation != DtoOperation::kReceive) return false;
  if (cookie.ep->is_datagrams()) return false;
  return completion.opcode == IBV_WC_RECV && (completion.wc_flags & invalidation_flags(cookie.ep->ia()));
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
    ia.disown(*evd);
    arena<Evd>().destroy(evd, ia.tables().dead);
    return tl::unexpected(opened.error());
  }
  return evd;
}

Result<> Evd::open_queues(uint32_t min_qlen) {
  if (!(streams_ & (kEvdDto | kEvdRmrBind))) return {};

  slow_wc_flags_ = IBV_WC_WITH_IMM | invalidation_flags(ia());
  const auto channel = open_channel();
  if (!channel) return tl::unexpected(channel.error());
  errno = ENOSPC;  // the default meaning, for example from libsiw in a process with 144 queues
  cq_.reset(ibv_create_cq(ia().context(), entries_for(min_qlen), this, *channel, 0));
  if (!cq_) return ia().refused_queue(errno);
  spare_ = spare_for(*cq_, min_qlen);
  working_cq_.store(cq_.get(), std::memory_order_relaxed);
  pending_mask_ = std::bit_ceil(2 * kBatch) - 1;
  pending_.reset(new (std::nothrow) ibv_wc[pending_mask_ + 1]);
  if (!pending_) return fail(Type::kInsufficientResources, Subtype::kMemory);
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

// Grows the ring to hold all events that may wait (see reap() and wait()) and all completions of the CQ, so that
// destroying an endpoint can empty the CQ. False if the ring must not grow further, or without memory.
bool Evd::grow_pending() {
  const uint32_t most = std::bit_ceil(qlen() + static_cast<uint32_t>(cq_->cqe) + kBatch) - 1;
  if (pending_mask_ >= most) return false;
  const uint32_t mask = std::min(most, 4 * pending_mask_ + 3);
  std::unique_ptr<ibv_wc[]> larger(new (std::nothrow) ibv_wc[mask + 1]);
  if (!larger) return false;
  for (uint32_t i = pending_tail_; i != pending_head_; ++i) larger[i & mask] = pending_[i & pending_mask_];
  pending_ = std::move(larger);
  pending_mask_ = mask;
  return true;
}

Result<> Evd::allow_threshold(uint32_t threshold) {
  if (threshold < 1 || threshold > qlen()) return fail(Type::kInvalidParameter, Subtype::kThreshold);
  if (!cq_) return {};
  std::lock_guard guard(data_mutex_);
  while (pending_mask_ < threshold) {
    if (!grow_pending()) return fail(Type::kInsufficientResources, Subtype::kMemory);
  }
  return {};
}

Result<> Evd::empty_cq() {
  if (!cq_) return {};
  std::lock_guard guard(data_mutex_);
  while (refill()) {
  }
  if (is_full()) return fail(Type::kInsufficientResources, Subtype::kMemory);
  return {};
}

void Evd::configure(EvdConfig config) {
  ++configured_;
  config_ = config;
  // siw sends no notification of a receive when solicited notification is requested, so on siw every receive wakes.
  solicited_only_.store(config == EvdConfig::kSolicited && !ia().is_siw(), std::memory_order_relaxed);
}

void Evd::unconfigure() {
  if (--configured_ != 0) return;
  config_ = EvdConfig::kNotify;
  solicited_only_.store(false, std::memory_order_relaxed);
}

Result<> Evd::free(Evd& evd) {
  if (evd.in_use()) return fail(Type::kInvalidState, Subtype::kEvdInUse);
  if (evd.has_waiter()) return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  Ia& ia = evd.ia();
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
    if (event.kind == EventKind::kConnectionRequest || event.kind == EventKind::kUdRequest)
      (void)Cr::free(*event.cr.cr);
  }
  ia.disown(evd);
  arena<Evd>().destroy(&evd, ia.tables().dead);
  return {};
}

bool Evd::post(Event event) {
  event.evd = this;
  counters_.add(EvdCounter::kConnectionCallback);
  if (!software_.push(event)) {
    ia().report_evd_overflow(*this);
    return false;
  }
  notify();
  return true;
}

Result<> Evd::post_software(void* pointer) {
  if (!has(kEvdSoftware)) return fail(Type::kInvalidParameter, Subtype::kEvd);
  Event event{};
  event.kind = EventKind::kSoftware;
  event.evd = this;
  event.software = pointer;
  if (!software_.push(event)) return fail(Type::kQueueFull);
  notify();
  return {};
}

// These are out of line so that the fast path spends no registers on them.
void Evd::break_cq() {
  working_cq_.store(nullptr, std::memory_order_relaxed);
}

Error Evd::finish_empty_dequeue() {
  counters_.add(EvdCounter::kDequeueNotFound);
  const Error why{cq_broken() ? Type::kInternalError : Type::kQueueEmpty};
  data_mutex_.unlock();
  return why;
}

Result<> Evd::dequeue(Event& out) {
  return dequeue_to(EventSink{*this, out});
}

bool Evd::pop(Event& out) {
  if (software_.urgent()) flush_rings();
  if (software_.count() && software_.pop(out)) return true;
  if (pending_head_ != pending_tail_ || refill()) {
    deliver(pending_[pending_tail_++ & pending_mask_], out);
    return true;
  }
  return false;
}

// True if the consumer will see this completion.
inline bool Evd::accept(ibv_wc& completion) {
  Cookie& cookie = *reinterpret_cast<Cookie*>(completion.wr_id);
  taken_from_device(&cookie);
  if (!is_fast(completion, cookie)) [[unlikely]]
    return accept_slow(completion, cookie);
  ++signals_;
  cookie.ep->completed_fast(cookie);
  return true;
}

// Moves the completions that the consumer will see to the start of a polled batch.
inline uint32_t Evd::accept_all(ibv_wc* batch, int count) {
  uint32_t kept = 0;
  for (int i = 0; i < count; ++i) {
    if (!accept(batch[i])) [[unlikely]]
      continue;
    if (&batch[kept] != &batch[i]) [[unlikely]]
      batch[kept] = batch[i];
    ++kept;
  }
  return kept;
}

// The second half of refill() after poll_empty().
bool Evd::accept_batch(int count) {
  pending_head_ = accept_all(pending_.get(), count);
  return pending_head_ != 0 || refill();
}

// Moves one batch from the CQ to the ring of pending completions. It leaves out suppressed successes, so the consumer
// will see every pending completion.
bool Evd::refill() {
  if (pending_head_ == pending_tail_) {
    return accept_polled(poll_empty());
  }
  ibv_cq* const cq = working_cq_.load(std::memory_order_relaxed);
  if (!cq) return false;
  for (;;) {
    const uint32_t at = pending_head_ & pending_mask_;
    const uint32_t room = std::min(pending_mask_ + 1 - (pending_head_ - pending_tail_), pending_mask_ + 1 - at);
    const int capacity = static_cast<int>(std::min(kBatch, room));
    if (capacity == 0) {
      if (!grow_pending()) return false;
      continue;
    }
    const int count = verbs::poll(cq, &pending_[at], capacity);
    if (count < 0) break_cq();
    counters_.add(count > 0 ? EvdCounter::kPollFound : EvdCounter::kPollNotFound);
    if (count <= 0) return false;
    const uint32_t kept = accept_all(&pending_[at], count);
    pending_head_ += kept;
    if (kept) return true;
  }
}

bool Evd::accept_slow(const ibv_wc& completion, Cookie& cookie) {
  cookie.fast = false;  // makes deliver() check all of it
  if (!cookie.srq && cookie.ep->flush_link_of(cookie).flushed) return false;
  // From here on the completion has its EP.
  if (cookie.srq) cookie.srq->completed(cookie, completion.qp_num, completion.status == IBV_WC_SUCCESS);
  const bool delivers =
      (!cookie.suppressed || completion.status != IBV_WC_SUCCESS) && cookie.operation != DtoOperation::kInvalidate;
  if (invalidates(completion, cookie)) ia().windows().invalidated(completion.invalidated_rkey);
  cookie.ep->completed(cookie, completion.status, delivers);
  if (delivers && (!cookie.unsignalled || completion.status != IBV_WC_SUCCESS)) ++signals_;
  return delivers;
}

void Evd::deliver(const ibv_wc& completion, Event& out) {
  const Cookie& cookie = *reinterpret_cast<const Cookie*>(completion.wr_id);
  const bool success = completion.status == IBV_WC_SUCCESS;
  if (cookie.operation == DtoOperation::kBind) [[unlikely]] {
    out.kind = EventKind::kBindCompletion;
    out.evd = this;
    // Every error status of a bind means that the bind failed.
    const bool refused = !success && completion.status != IBV_WC_WR_FLUSH_ERR;
    out.bind = {cookie.window, cookie.user_cookie,
                refused ? DtoStatus::kRmrOperationFailed : to_dto_status(completion.status)};
    return cookie.ep->delivered(cookie);
  }
  out.kind = EventKind::kDtoCompletion;
  out.evd = this;
  out.dto.ep = cookie.ep;
  out.dto.user_cookie = cookie.user_cookie;
  out.dto.status = to_dto_status(completion.status);
  out.dto.operation = cookie.operation;
  out.dto.length = 0;
  out.dto.immediate = 0;
  out.dto.rmr_context = 0;
  if (success && cookie.operation != DtoOperation::kReceive) out.dto.length = cookie.length;
  if (cookie.operation == DtoOperation::kReceive && cookie.ep->is_datagrams()) [[unlikely]] {
    out.dto.operation = DtoOperation::kReceiveUd;
    if (success) {
      out.dto.length = completion.byte_len;
      cookie.ep->counters().add_with_bytes(EpCounter::kRecvUd, out.dto.length);
    }
  } else if (success && cookie.operation == DtoOperation::kReceive) {
    out.dto.length = completion.byte_len;
    if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      out.dto.operation = DtoOperation::kReceiveImmed;
      out.dto.immediate = completion.imm_data;
    } else if (invalidates(completion, cookie)) {
      out.dto.operation = DtoOperation::kReceiveWithInvalidate;
      out.dto.rmr_context = completion.invalidated_rkey;
    }
    const bool immediate = out.dto.operation == DtoOperation::kReceiveImmed;
    cookie.ep->counters().add_with_bytes(immediate ? EpCounter::kRecvRdmaImm : EpCounter::kRecv, out.dto.length);
  }
  cookie.ep->delivered(cookie);
}

void Evd::reap() {
  std::lock_guard guard(data_mutex_);
  if (software_.urgent()) flush_rings();
  while (pending_head_ - pending_tail_ < qlen() && refill()) {
  }
}

void Evd::forget_completions(Ep& ep) {
  std::lock_guard guard(data_mutex_);
  for (FlushLink* link : ep.flush_links()) unflushed_.remove(*link);
  const auto of_ep = [&ep](const ibv_wc& completion) {
    return reinterpret_cast<const Cookie*>(completion.wr_id)->ep == &ep;
  };
  while (refill()) {
  }
  // Completions that cannot be taken off the CQ must never be dereferenced, so their cookies are released.
  if (is_full()) break_cq();
  uint32_t kept = pending_tail_;
  for (uint32_t i = pending_tail_; i != pending_head_; ++i) {
    const ibv_wc& completion = pending_[i & pending_mask_];
    if (!of_ep(completion)) {
      pending_[kept++ & pending_mask_] = completion;
      continue;
    }
    const auto& cookie = *reinterpret_cast<const Cookie*>(completion.wr_id);
    if (cookie.srq) cookie.srq->dropped(cookie);  // the queue lives on
  }
  pending_head_ = kept;
}

void Evd::forget(Ep& ep) {
  forget_completions(ep);
  software_.remove_if([&ep](const Event& event) {
    switch (data_of(event.kind)) {
      case EventData::kConnection:
        return event.connection.ep == &ep;
      case EventData::kDatagrams:
        return event.datagrams.ep == &ep;
      case EventData::kDto:
      case EventData::kBind:
      case EventData::kCr:
      case EventData::kAsync:
      case EventData::kSoftware:
        break;
    }
    return false;
  });
}

void Evd::forget_errors(const Object& object) {
  software_.remove_if([&object](const Event& event) {
    return data_of(event.kind) == EventData::kAsync && event.async.object == &object;
  });
}

void Evd::set_waitable(bool waitable) {
  unwaitable_.store(!waitable, std::memory_order_seq_cst);
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
  while (refill()) {
  }
  // Without room in the ring the CQ may hold more completions. The flush continues when some have been delivered.
  if (is_full()) return software_.set_urgent(true);
  while (FlushLink* const link = unflushed_.take()) {
    CookieRing& ring = link->ring;
    link->flushed = true;
    ring.for_each_unfinished([&](Cookie& cookie) {
      if (is_full()) return false;
      // We assume that a suppressed request on a connection has succeeded.
      const bool delivers = !cookie.suppressed;
      cookie.fast = false;
      cookie.ep->completed(cookie, IBV_WC_WR_FLUSH_ERR, delivers);
      if (!delivers) return true;
      ibv_wc& completion = pending_[pending_head_++ & pending_mask_];
      completion = {};
      completion.wr_id = reinterpret_cast<uint64_t>(&cookie);
      completion.status = IBV_WC_WR_FLUSH_ERR;
      ++signals_;
      return true;
    });
    if (is_full()) {
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
