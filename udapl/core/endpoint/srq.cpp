// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/endpoint/srq.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <utility>

#include "ibverbs-glue/no_segments.hpp"
#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/buffer_maintenance.hpp"
#include "udapl/core/queue/device_order.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
Srq::Srq(Ia& ia, Pz& pz, verbs::Srq srq, const SrqAttr& attr)
    : Object(ia.tables().live, kKind, &ia),
      pz_(pz),
      attr_(attr),
      device_length_(attr.max_recv_dtos),
      srq_(std::move(srq)) {
  grow(attr.max_recv_dtos);
}

void Srq::grow(uint32_t slots) {
  while (slots_.size() < slots) {
    Slot& slot = slots_.emplace_back();
    slot.request.srq = this;
    slot.request.operation = DtoOperation::kReceive;
    if (ia().maintains_caches()) slot.kept.reserve(attr_.max_recv_iov);
    slot.next_free = std::exchange(free_, &slot);
  }
}

Result<Srq*> Srq::create(Ia& ia, Pz& pz, const SrqAttr& attr) {
  const ibv_device_attr& device = ia.device();
  if (device.max_srq <= 0) return fail(Type::kModelNotSupported);
  if (attr.max_recv_dtos == 0 ||
      !within(ia, "an SRQ's max_recv_dtos", attr.max_recv_dtos, static_cast<uint64_t>(device.max_srq_wr)) ||
      !within(ia, "an SRQ's max_recv_iov", attr.max_recv_iov, static_cast<uint64_t>(device.max_srq_sge)) ||
      !within(ia, "an SRQ's low_watermark", attr.low_watermark, attr.max_recv_dtos)) {
    return fail(Type::kInvalidParameter, Subtype::kAttr);
  }
  ibv_srq_init_attr init{};
  init.attr.max_wr = attr.max_recv_dtos;
  init.attr.max_sge = std::max(1U, attr.max_recv_iov);
  errno = ENOSPC;  // as in Evd::open_queues()
  verbs::Srq handle(ibv_create_srq(pz.pd(), &init));
  if (!handle) return ia.refused_queue(errno);
  Srq* srq = arena<Srq>().create(ia, pz, std::move(handle), attr);
  srq->srq_->srq_context = static_cast<Object*>(srq);
  ia.adopt(*srq);
  // The new queue is empty, and so below every watermark, but this needs no event. The device compares only when it
  // takes a receive, so the first event follows after the consumer has posted some.
  if (int error = attr.low_watermark ? srq->modify_limit(attr.low_watermark) : 0) {
    (void)free(*srq);
    return fail_errno(error);
  }
  return srq;
}

Result<> Srq::free(Srq& srq) {
  if (srq.in_use()) return fail(Type::kInvalidState, Subtype::kSrqInUse);
  if (int error = verbs::destroy(srq.srq_)) return fail_errno(error);
  srq.ia().destroy(srq);
  return {};
}

SrqCounts Srq::count() {
  // Completed receives that are still on a CQ are no longer on the queue. The function does not hold the lock, which
  // comes after an EVD's; no EP can be freed meanwhile.
  std::vector<Evd*> evds;
  {
    std::lock_guard guard(mutex_);
    for (const auto& [qp_num, ep] : eps_) evds.push_back(ep->evds().recv);
  }
  // Several EPs may share an EVD.
  std::sort(evds.begin(), evds.end());
  evds.erase(std::unique(evds.begin(), evds.end()), evds.end());
  for (Evd* evd : evds) evd->reap();
  std::lock_guard guard(mutex_);
  return {available_, outstanding_};
}

Result<> Srq::resize(uint32_t max_recv_dtos) {
  if (!within(ia(), "an SRQ's max_recv_dtos", max_recv_dtos, static_cast<uint64_t>(ia().device().max_srq_wr))) {
    return fail(Type::kInvalidParameter, Subtype::kAttr);
  }
  std::lock_guard guard(mutex_);
  if (max_recv_dtos < outstanding_ || max_recv_dtos < attr_.low_watermark) return fail(Type::kInvalidState);
  grow(max_recv_dtos);
  ibv_srq_attr attr{};
  attr.max_wr = max_recv_dtos;
  if (int error = ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_MAX_WR)) {
    // uDAPL 1.2 dat_srq_resize: a queue need not shrink for the call to succeed.
    if (max_recv_dtos > device_length_) return fail_errno(error);
  } else {
    device_length_ = max_recv_dtos;
  }
  attr_.max_recv_dtos = max_recv_dtos;
  return {};
}

Result<> Srq::set_low_watermark(uint32_t low_watermark) {
  if (low_watermark > attr_.max_recv_dtos) return refuse_above(Subtype::kAttr, attr_.max_recv_dtos);
  // The device may have reported the former watermark, and nobody has seen that yet. It is not reported for this one.
  const bool watched = watches_.exchange(false);
  dropped_report_ = false;
  ConnectionManager::instance().serve_device_events();
  if (int error = modify_limit(low_watermark)) {
    watches_ = watched;
    if (dropped_report_) report_low_watermark();
    return fail_errno(error);
  }
  attr_.low_watermark = low_watermark;
  // The device checks the watermark only when it takes a receive, which may never happen. It watches already, so no
  // receive is missed.
  if (count().available >= low_watermark) return {};
  (void)modify_limit(0);
  report_low_watermark();
  return {};
}

// Both the device and set_low_watermark() may find the queue below one setting of the watermark.
void Srq::report_low_watermark() {
  if (!watches_.exchange(false)) {
    dropped_report_ = true;
    return;
  }
  ia().report_async(EventKind::kAsyncSrq, *this, static_cast<int>(SrqReason::kLowWatermark));
}

int Srq::modify_limit(uint32_t receives) {
  if (receives != 0) watches_ = true;
  ibv_srq_attr attr{};
  attr.srq_limit = receives;
  return ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT);
}

Result<> Srq::post_recv(std::span<const ibv_sge> segments, uint64_t cookie) {
  if (segments.size() > attr_.max_recv_iov) return refuse_above(Subtype::kSegmentCount, attr_.max_recv_iov);
  if (failed_.load(std::memory_order_relaxed)) return fail(Type::kInvalidState);
  std::lock_guard guard(mutex_);
  if (outstanding_ >= attr_.max_recv_dtos || !free_) return fail(Type::kInsufficientResources);
  Slot& slot = *free_;
  slot.request.cookie = cookie;
  if (ia().maintains_caches()) [[unlikely]] {
    slot.kept.clear();
    for (const ibv_sge& segment : segments) slot.kept.push_back(cpu_segment(ia(), segment));
    maintain(ia(), slot.kept, true);
  }
  ibv_recv_wr wr{};
  wr.wr_id = wr_id_of(slot.request);
  wr.sg_list = const_cast<ibv_sge*>(segments.data());
  wr.num_sge = static_cast<int>(segments.size());
  if (segments.empty() && !ia().rules().takes_no_segments) verbs::name_a_segment(wr);
  ibv_recv_wr* bad = nullptr;
  given_to_device(&slot.request);
  if (int error = ibv_post_srq_recv(srq_.get(), &wr, &bad)) [[unlikely]]
    return Ep::refused(error);
  free_ = slot.next_free;
  ++outstanding_;
  ++available_;
  assert(available_ <= outstanding_ && outstanding_ <= slots_.size());
  return {};
}

void Srq::add(uint32_t qp_num, Ep& ep) {
  std::lock_guard guard(mutex_);
  assert(qp_num != 0 && !eps_.contains(qp_num));
  eps_[qp_num] = &ep;
}

void Srq::remove(uint32_t qp_num) {
  std::lock_guard guard(mutex_);
  [[maybe_unused]] const size_t erased = eps_.erase(qp_num);
  assert(erased == 1);
}

void Srq::completed(WorkRequest& request, uint32_t qp_num, bool succeeded) {
  std::lock_guard guard(mutex_);
  assert(available_ > 0 && request.srq == this && eps_.contains(qp_num));
  --available_;
  if (!succeeded) reinterpret_cast<Slot&>(request).kept.clear();
  request.ep = eps_.find(qp_num)->second;  // the EP is found until its last completion is forgotten
}

void Srq::dropped(const WorkRequest& request) {
  const_cast<Slot&>(reinterpret_cast<const Slot&>(request)).kept.clear();
  delivered(request);
}

void Srq::delivered(const WorkRequest& request) {
  auto& slot = const_cast<Slot&>(reinterpret_cast<const Slot&>(request));
  if (ia().maintains_caches()) [[unlikely]]
    maintain(ia(), slot.kept, true);
  std::lock_guard guard(mutex_);
  slot.next_free = std::exchange(free_, &slot);
  assert(outstanding_ > available_);
  --outstanding_;
}

void Srq::on_device_event(ibv_event_type type) {
  if (type != IBV_EVENT_SRQ_ERR) return report_low_watermark();
  failed_ = true;
  ia().report_async(EventKind::kAsyncSrq, *this, static_cast<int>(SrqReason::kTransferToError));
}

}  // namespace dapple::udapl
