// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The data path of an endpoint. Nothing here locks unless the IA was opened thread-safe. It allocates only for the
// first unsignalled request, and if a queue is full.
#include <algorithm>
#include <mutex>

#include "ibverbs-glue/no_cancel.hpp"
#include "ibverbs-glue/no_segments.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/ep_post_fast.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/buffer_maintenance.hpp"
#include "udapl/core/queue/device_order.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

// Tells whether the device writes to a request's segments.
bool device_writes(DtoOperation operation) {
  return operation == DtoOperation::kRdmaRead || operation == DtoOperation::kFetchAndAdd ||
         operation == DtoOperation::kCompareAndSwap;
}

}  // namespace

tl::unexpected<Error> Ep::refused(int error) {
  // libsiw returns the kernel's negative errno values.
  return std::abs(error) == ENOMEM ? fail(Type::kInsufficientResources) : fail_errno(std::abs(error));
}

// True if the success of such a request only needs to be reported.
bool Ep::may_be_fast(DtoOperation operation, uint32_t flags) const {
  return operation <= DtoOperation::kReceive && !(flags & (kSuppress | kUnsignalled)) && !ia().maintains_caches() &&
         !is_datagrams();
}

Result<> Ep::check_request(std::span<const ibv_sge> segments, uint32_t max_segments, uint32_t flags) const {
  if (segments.size() > max_segments) return refuse_above(Subtype::kSegmentCount, max_segments);
  if (flags & ~request_flags()) return refuse(Subtype::kFlags, kForeignFlags);
  return {};
}

Result<> Ep::check_can_request(DtoOperation operation) const {
  if (state() == EpState::kConnected) [[likely]]
    return {};
  return check_can_request_slowly(operation);
}

Result<> Ep::check_can_request_slowly(DtoOperation operation) const {
  const EpState now = state();
  if ((operation == DtoOperation::kSendUd) != is_datagrams()) return fail(Type::kInvalidHandle, Subtype::kHandleEp);
  // uDAPL 2.0 6.6.18: on a disconnected EP the post succeeds and the DTO is flushed.
  if (now == EpState::kDatagrams || now == EpState::kDisconnected) return {};
  return tl::unexpected(state_error());
}

// Under the lock, because another thread may modify the endpoint.
Result<> Ep::check_can_receive(size_t segment_count, uint32_t flags) const {
  if (segment_count > attr_.max_recv_iov) return refuse_above(Subtype::kSegmentCount, attr_.max_recv_iov);
  if (flags & ~recv_flags()) return refuse(Subtype::kFlags, kForeignFlags);
  if (!qp_) [[unlikely]]
    return tl::unexpected(state_error());
  return {};
}

bool Ep::may_copy(std::span<const ibv_sge> segments) {
  return std::all_of(segments.begin(), segments.end(), [this](const ibv_sge& segment) {
    return segment.length == 0 || is_in_source(segment, segment.length) || learn_source(segment);
  });
}

bool Ep::learn_source(const ibv_sge& segment) {
  const LmrTable& table = ia().lmrs();
  const auto guard = table.guard();
  const Lmr* lmr = table.find(segment.lkey);
  if (!lmr || &lmr->pz() != pz_ || lmr->attr().zero_based || !lmr->contains(segment.addr, segment.length)) return false;
  source_ = {segment.lkey, table.departures(), lmr->base(), lmr->attr().length};
  return true;
}

Result<> Ep::post_recv(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t flags) {
  // A thread that is cancelled inside the device's call would leave a request that no other code knows.
  const NoCancel whole;
  std::unique_lock guard(post_mutex_);
  if (auto can = check_can_receive(segments.size(), flags); !can) return can;
  if (!evds_.recv || srq_) return fail(Type::kInvalidState);
  if (receives_.full()) [[unlikely]] {
    // Suppressed requests leave the ring only when a thread looks at the CQ, and their consumer may have no reason to.
    guard.unlock();
    evds_.recv->reap();
    guard.lock();
    if (auto can = check_can_receive(segments.size(), flags); !can) return can;
    if (receives_.full()) return fail(Type::kInsufficientResources);
  }
  const uint64_t length = total_length(segments);
  WorkRequest& request = receives_.next();
  request.set(*this, DtoOperation::kReceive, cookie, length, flags, may_be_fast(DtoOperation::kReceive, flags));
  if (ia().maintains_caches()) maintain_before_post(request, receives_, segments, true);

  ibv_recv_wr wr{};
  wr.wr_id = wr_id_of(request);
  wr.sg_list = const_cast<ibv_sge*>(segments.data());
  wr.num_sge = static_cast<int>(segments.size());
  if (segments.empty() && !ia().rules().takes_no_segments) verbs::name_a_segment(wr);
  ibv_recv_wr* bad = nullptr;
  const bool kept = keep_from_device(request);
  given_to_device(&request);
  if (int error = kept ? 0 : ibv_post_recv(qp_.get(), &wr, &bad)) [[unlikely]]
    return refused(error);
  receives_.post();
  counters_.add_with_bytes(EpCounter::kPostRecv, length);
  if (has_ended_meanwhile()) [[unlikely]]
    flush_receives();
  return {};
}

// uDAPL 2.0 6.6.19: a receive posted to a disconnected EP is flushed. A software device does not notice a receive; it
// looks at its queue when the queue pair is put into the error state again.
void Ep::flush_receives() {
  const NoCancel whole;
  if (!ia().rules().flushes_late_requests) return flush_given_up(evds_.recv, flush_receives_);
  fail_qp();
}

bool Ep::is_given_up() const {
  return !ia().rules().flushes_late_requests && state() == EpState::kDisconnected;
}

// Flushed requests are always reported.
bool Ep::keep_from_device(WorkRequest& request) const {
  if (!is_given_up()) [[likely]]
    return false;
  request.suppressed = false;
  return true;
}

// Until the device has flushed, it still completes these requests; give_up_device() then finds those posted meanwhile.
void Ep::flush_given_up(Evd* evd, FlushLink& link) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (device_has_flushed_.load(std::memory_order_relaxed)) evd->flush_later(link);
}

// The queue pair is in the error state, so the requests that the device flushed are on the CQs.
void Ep::give_up_device() {
  if (ia().rules().flushes_late_requests) return;
  device_has_flushed_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!receives_.empty()) evds_.recv->flush_later(flush_receives_);
  if (!requests_.empty()) evds_.request->flush_later(flush_requests_);
}

Result<> Ep::post_send(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t flags) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  if (auto fits = check_request(segments, attr_.max_request_iov, flags); !fits) return fits;
  return post_request(wr, segments, cookie, DtoOperation::kSend, flags);
}

Result<> Ep::post_rdma_write(std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                             uint32_t flags) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  return post_write(wr, segments, cookie, remote, DtoOperation::kRdmaWrite, flags);
}

Result<> Ep::post_rdma_write_immed(std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                                   uint32_t immediate, uint32_t flags) {
  if (!ia().rules().has_immediate_data) return fail(Type::kModelNotSupported);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = immediate;
  return post_write(wr, segments, cookie, remote, DtoOperation::kRdmaWriteImmed, flags);
}

Result<> Ep::post_write(ibv_send_wr& wr, std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                        DtoOperation operation, uint32_t flags) {
  wr.wr.rdma.remote_addr = remote.address;
  wr.wr.rdma.rkey = remote.context;
  if (auto fits = check_request(segments, attr_.max_rdma_write_iov, flags); !fits) return fits;
  // uDAPL 2.0 6.6.21: a write of more than the remote buffer holds is a length error.
  if (total_length(segments) > remote.length) return fail(Type::kLengthError);
  return post_request(wr, segments, cookie, operation, flags);
}

Result<> Ep::post_rdma_read(std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                            uint32_t flags) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma.remote_addr = remote.address;
  wr.wr.rdma.rkey = remote.context;
  if (auto fits = check_request(segments, attr_.max_rdma_read_iov, flags); !fits) return fits;
  // Verbs reads as much as the local segments hold, so the remote buffer must hold all of that.
  if (total_length(segments) > remote.length) return fail(Type::kLengthError);
  return post_request(wr, segments, cookie, DtoOperation::kRdmaRead, flags);
}

// For a request that may be suppressed: ensures that it has a slot. Such requests leave the ring only when a later
// request has completed, so now and then the function signals one anyway. The result tells whether this one is
// signalled, and whether it took one of the CQ's spare entries. The function takes completions from the CQ if
// necessary, because no other thread may have a reason to.
Result<bool> Ep::find_room(DtoOperation operation, uint32_t flags, std::unique_lock<OptionalMutex>& guard) {
  if (flags & kSuppress && room_to_flush_ == 0) [[unlikely]] {
    guard.unlock();
    auto made = make_room_to_flush();
    guard.lock();
    if (made) made = check_can_request(operation);
    if (!made) return tl::unexpected(made.error());
  }
  for (bool reaped = false;; reaped = true) {
    if (!requests_.full()) {
      const uint32_t run = unsignalled_run_ + 1;
      if (!(flags & kSuppress) || run * 2 < attr_.max_request_dtos) return false;
      if (evds_.request->take_spare()) return true;
      // No spare entry is left; a later request can be signalled instead, unless suppressed requests are about to fill
      // the ring.
      if (reaped && run < attr_.max_request_dtos) return false;
    }
    if (reaped) return fail(Type::kInsufficientResources);
    guard.unlock();
    evds_.request->reap();
    guard.lock();
    if (auto ready = check_can_request(operation); !ready) return tl::unexpected(ready.error());
  }
}

// Called before the first suppressed request. The whole ring may fill with suppressed requests.
Result<> Ep::make_room_to_flush() {
  assert(evds_.request);
  const uint32_t most = std::max(1U, attr_.max_request_dtos);
  if (auto made = evds_.request->make_room_to_flush(most); !made) return made;
  uint32_t none = 0;
  // Another thread may have come first.
  if (!room_to_flush_.compare_exchange_strong(none, most)) evds_.request->give_back_room_to_flush(most);
  return {};
}

void Ep::give_back_room_to_flush() {
  if (const uint32_t room = room_to_flush_.exchange(0)) evds_.request->give_back_room_to_flush(room);
}

void Ep::give_back_spares() {
  requests_.for_each_incomplete([this](const WorkRequest& request) {
    if (request.spare) evds_.request->give_back_spare();
    return true;
  });
}

Result<> Ep::post_request(ibv_send_wr& wr, std::span<const ibv_sge> segments, uint64_t cookie, DtoOperation operation,
                          uint32_t flags, Rmr* window) {
  // A thread that is cancelled inside the device's call would leave a request that no other code knows.
  const NoCancel whole;
  std::unique_lock guard(post_mutex_);  // another thread may reset the EP meanwhile
  if (auto ready = check_can_request(operation); !ready) [[unlikely]]
    return ready;
  if (!evds_.request) return fail(Type::kInvalidState);
  const uint64_t length = total_length(segments);
  // The device's limit counts, not the EP's: consumers ask for less than they use, and no provider has enforced the
  // EP's.
  if (length > ia().port_attr().max_msg_sz)
    return refuse(Subtype::kSegments, "the segments have more bytes than a message of the device");
  bool spare = false;
  if (requests_.full() || flags & kSuppress) [[unlikely]] {
    const auto room = find_room(operation, flags, guard);
    if (!room) return tl::unexpected(room.error());
    spare = *room;
  }
  WorkRequest& request = requests_.next();
  request.set(*this, operation, cookie, length, flags, may_be_fast(operation, flags));
  if (window) request.window = window;
  request.spare = spare;

  const bool reads = device_writes(operation);
  const bool signal = !request.suppressed || spare;
  wr.send_flags = 0;
  if (signal) wr.send_flags |= IBV_SEND_SIGNALED;
  if (flags & kSolicitedWait) wr.send_flags |= IBV_SEND_SOLICITED;
  if (flags & kBarrierFence) wr.send_flags |= IBV_SEND_FENCE;
  if (!reads && operation != DtoOperation::kBind && operation != DtoOperation::kInvalidate && length <= max_inline_ &&
      may_copy(segments))
    wr.send_flags |= IBV_SEND_INLINE;
  if (ia().maintains_caches()) [[unlikely]] {
    // The CPU copies inline data, so its source needs no maintenance.
    if (wr.send_flags & IBV_SEND_INLINE)
      request.num_segments = 0;
    else
      maintain_before_post(request, requests_, segments, reads);
  }
  wr.wr_id = wr_id_of(request);
  wr.sg_list = const_cast<ibv_sge*>(segments.data());
  wr.num_sge = static_cast<int>(segments.size());
  if (reads && segments.empty() && !ia().rules().takes_no_segments) verbs::name_a_segment(wr);
  const bool kept = keep_from_device(request);
  given_to_device(&request);
  if (int error = kept ? 0 : submit(wr)) [[unlikely]] {
    if (spare) evds_.request->give_back_spare();
    return refused(error);
  }
  unsignalled_run_ = signal ? 0 : unsignalled_run_ + 1;
  requests_.post();
  counters_.add_request(operation, length);
  if (!ia().rules().flushes_late_requests && has_ended_meanwhile()) [[unlikely]]
    flush_given_up(evds_.request, flush_requests_);
  return {};
}

// Remembers the segments for a second maintenance when the request is done: the CPU may prefetch lines that the device
// writes.
void Ep::maintain_before_post(const WorkRequest& request, WorkRequestRing& ring, std::span<const ibv_sge> segments,
                              bool for_cpu) {
  const auto kept = ring.segments(request);
  assert(segments.size() <= kept.size());
  for (size_t i = 0; i < segments.size(); ++i) kept[i] = cpu_segment(ia(), segments[i]);
  maintain(ia(), kept.first(segments.size()), for_cpu);
  const_cast<WorkRequest&>(request).num_segments = static_cast<uint16_t>(for_cpu ? segments.size() : 0);
}

void Ep::completed(WorkRequest& request, ibv_wc_status status, bool delivers) {
  if (status != IBV_WC_SUCCESS) request.num_segments = 0;  // no data to maintain; the memory may be gone
  assert(request.ep == this && (!request.srq || request.srq == srq_));
  if (request.spare) evds_.request->give_back_spare();
  if (!request.srq) [[likely]] {
    WorkRequestRing& ring = ring_of(request);
    release(ring, ring.complete(request, delivers));
  }
  if (draining()) [[unlikely]]
    connection_.notify();
  if (status != IBV_WC_SUCCESS && request.operation == DtoOperation::kBind) [[unlikely]]
    ia().windows().failed(request.window, *this);
  // The queue pair is in the error state now, so the connection is broken; the connection manager's thread reports
  // that.
  if (status == IBV_WC_WR_FLUSH_ERR) [[unlikely]] {
    if (flush_is_the_devices()) connection_.report_flush();
  } else if (status != IBV_WC_SUCCESS) [[unlikely]] {
    connection_.report_failure();
  }
}

// Rxe of Linux 6.12 flushes a request with an unknown lkey and reports nothing else. Code that ends a connection leaves
// CONNECTED before it puts the queue pair into the error state, or checks the state under the control mutex as
// on_attention() does. On iWARP the kernel puts the queue pair into the error state when the peer disconnects. A queue
// pair for datagrams has no peer that disconnects it.
bool Ep::flush_is_the_devices() const {
  if (is_datagrams()) return true;
  const EpState now = state();
  return (now == EpState::kConnected || now == EpState::kCompletionPending) && ia().rules().error_state_is_a_failure;
}

void Ep::delivered(const WorkRequest& request) {
  assert(request.ep == this);
  if (request.srq) [[unlikely]]
    return request.srq->delivered(request);
  WorkRequestRing& ring = ring_of(request);
  release(ring, ring.deliver(request));
}

void Ep::release(WorkRequestRing& ring, uint32_t end) {
  if (end == ring.released()) return;
  if (ia().maintains_caches()) [[unlikely]] {
    for (uint32_t sequence = ring.released(); sequence != end; ++sequence) {
      const WorkRequest& done = ring.at(sequence);
      assert(done.sequence == sequence);
      maintain(ia(), ring.segments(done).first(done.num_segments), true);
    }
  }
  ring.release_to(end);
}

}  // namespace dapple::udapl
