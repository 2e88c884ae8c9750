// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Endpoint: one queue pair, the EVDs to which it reports, and the requests posted to it. Its Connection connects an RC
// queue pair; its Datagrams has the addresses to which a UD queue pair sends.
//
// Threads: the consumer serializes posting unless the IA is thread-safe. The state changes under the control mutex; the
// data path reads it without the mutex.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/connection/comm.hpp"
#include "udapl/core/connection/connection.hpp"
#include "udapl/core/connection/datagrams.hpp"
#include "udapl/core/counters.hpp"
#include "udapl/core/endpoint/ep_state.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/queue/flush_list.hpp"
#include "udapl/core/queue/work_request_ring.hpp"

namespace dapple::udapl {

class Evd;
class Pz;
class Rmr;
class Srq;

struct EpAttr {
  uint64_t max_message_size = 0;  // bytes; 0 means the device's limit
  uint64_t max_rdma_size = 0;     // bytes; 0 means the device's limit
  uint32_t qos = 0;
  uint32_t recv_completion_flags = 0;
  uint32_t request_completion_flags = 0;
  uint32_t max_recv_dtos = 16;
  uint32_t max_request_dtos = 16;
  uint32_t max_recv_iov = 4;
  uint32_t max_request_iov = 4;
  uint32_t max_rdma_read_in = 4;
  uint32_t max_rdma_read_out = 4;
  uint32_t max_rdma_read_iov = 0;  // raised to max_request_iov, within the device's limit
  uint32_t max_rdma_write_iov = 0;
  bool datagrams = false;  // the service type, which never changes
};

struct EpEvds {
  Evd* recv = nullptr;     // null: no receives can be posted
  Evd* request = nullptr;  // null: no requests can be posted
  Evd* connect = nullptr;  // null: cannot connect
};

struct RemoteBuffer {
  uint64_t address;
  uint64_t length;  // bytes
  uint32_t context;
};

class Ep : public Object {
 public:
  static constexpr Kind kKind = Kind::kEp;

  // Life cycle. The caller holds the control mutex. With pz null the queue pair is made by configure(). With an srq,
  // which needs a receive EVD, the EP takes its receives from there.
  static Result<Ep*> create(Ia& ia, Pz* pz, const EpEvds& evds, const EpAttr& attr, Srq* srq = nullptr);
  // INVALID_STATE while a service point or a connection request holds the EP.
  Result<> check_can_free() const;
  // Ends a connection abruptly, without an event. Drops completions that were not delivered.
  static Result<> free(Ep& ep);
  // Ends the connection and all exchanges abruptly, without an event. The connection manager forgets the EP.
  void abandon();
  // Removes the reports about its exchanges for datagrams from the EVDs, before these exchanges are destroyed.
  void forget_datagrams();
  // Moves from DISCONNECTED to UNCONNECTED, with a new queue pair. Drops completions that were not delivered, but keeps
  // connection events. After an error the EP is still DISCONNECTED.
  Result<> reset();

  // Changes EVDs, PZ or limits before the connection. INVALID_STATE once a connection was begun, and while something is
  // posted that a new queue pair would lose. An error changes nothing.
  Result<> configure(Pz* pz, const EpEvds& evds, const EpAttr& attr, const Comm& comm);

  Pz* pz() const { return pz_; }
  Srq* srq() const { return srq_; }
  const EpEvds& evds() const { return evds_; }
  const EpAttr& attr() const { return attr_; }
  const Comm& comm() const { return comm_; }
  // The CompletionFlags that a post may have. uDAPL 2.0 6.6.16: a DTO may be unsignalled only on an EP made for that.
  uint32_t recv_flags() const { return allowed_flags(attr_.recv_completion_flags); }
  uint32_t request_flags() const { return allowed_flags(attr_.request_completion_flags); }
  // Never one of the unconfigured states; reported_state() returns these as well.
  EpState state() const { return state_.load(std::memory_order_acquire); }
  // The number of receives posted to this EP and not dequeued.
  uint32_t outstanding_receives() const { return receives_.count(); }
  // An EP without a PZ or without a connect EVD is unconfigured; connecting it needs both.
  EpState reported_state() const;
  bool recv_idle() const { return receives_.empty(); }
  bool request_idle() const { return requests_.empty(); }
  uint32_t qp_num() const { return qp_ ? qp_->qp_num : 0; }

  // The caller holds the control mutex. The consumer's calls. A datagram endpoint may connect again and again. It has
  // nothing to disconnect, so disconnect() succeeds there, as in the original provider. timeout is in microseconds.
  Result<> connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                   std::span<const uint8_t> private_data);
  Result<> disconnect(bool abrupt);
  Connection& connection() { return connection_; }
  const Connection& connection() const { return connection_; }
  Datagrams* datagrams() { return datagrams_.get(); }  // null on an EP for connections
  bool is_datagrams() const { return datagrams_ != nullptr; }

  // For Connection, Datagrams, service points and connection requests. The caller holds the control mutex.
  void enter(EpState next) {
    assert(next == state() || may_follow(state(), next));
    state_.store(next, std::memory_order_release);
  }
  bool is_up() const {
    const EpState now = state();
    return now == EpState::kConnected || now == EpState::kDisconnectPending || now == EpState::kDatagrams;
  }
  // True if connecting or accepting may begin: on an UNCONNECTED EP, and on a datagram endpoint with other peers.
  bool takes_peers() const;
  // INVALID_STATE in another state.
  Result<> check_state(EpState wanted) const;
  Result<> check_configured() const;
  Error state_error() const;
  ibv_qp* qp() const { return qp_.get(); }
  void fail_qp();
  // Enters DISCONNECTED and flushes the posted requests.
  void shut_down();
  // A graceful disconnect lets the requests posted so far complete. drain() takes their completions off the CQ, since
  // the consumer may have no reason to, and ends the wait with true when all have completed or no more complete.
  void begin_drain();
  bool drain();
  bool draining() const { return draining_.load(std::memory_order_acquire); }

  // Data path. Each call reads its segments before it returns.
  Result<> post_recv(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t flags);
  Result<> post_send(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t flags);
  Result<> post_rdma_write(std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                           uint32_t flags);
  // immediate travels as it lies in memory, and consumes a receive at the peer.
  Result<> post_rdma_write_immed(std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                                 uint32_t immediate, uint32_t flags);
  Result<> post_rdma_read(std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                          uint32_t flags);
  // A 64-bit atomic on the remote word: kFetchAndAdd, or kCompareAndSwap, which needs the value to swap in. The old
  // value arrives in the first 8 bytes of result. Operands and values are in the CPU's byte order.
  Result<> post_atomic(DtoOperation operation, const ibv_sge& result, uint64_t cookie, const RemoteBuffer& remote,
                       uint64_t add_or_compare, uint64_t swap, uint32_t flags);
  // Sends to a peer whose address belongs to this endpoint; INVALID_HANDLE on an endpoint for connections.
  Result<> post_send_ud(std::span<const ibv_sge> segments, uint64_t cookie, ibv_ah* address, uint32_t qp_num,
                        uint32_t flags);
  // The consumer's Send, which also invalidates the context of a window at the peer.
  Result<> post_send_with_invalidate(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t context,
                                     uint32_t flags);
  // Reads into memory to which a window of ours is bound.
  Result<> post_rdma_read_to_rmr(const RemoteBuffer& sink, uint64_t cookie, const RemoteBuffer& remote, uint32_t flags);
  // For Rmr. post_window() posts a bind, or an invalidation, that completes with a bind event; post_window_invalidate()
  // posts an invalidation without an event.
  Result<> post_window(ibv_send_wr& wr, Rmr& rmr, uint64_t cookie, uint32_t flags);
  Result<> post_window_invalidate(ibv_send_wr& wr);

  // The fast path, for the usual request: default flags, a connected EP, no lock, and no caches to maintain. For any
  // other request, and for a wrong one, there is no result and nothing has happened; the caller then uses the functions
  // above. The result is 0 when posted, otherwise the errno value with which the device refused. Inline, in
  // ep_post_fast.hpp.
  template <DtoOperation kOperation>
  std::optional<int> post_request_fast(int count, const ibv_sge* segments, uint64_t cookie, const RemoteBuffer& remote,
                                       uint32_t flags);
  std::optional<int> post_recv_fast(int count, const ibv_sge* segments, uint64_t cookie, uint32_t flags);
  // Translates the errno value of a refused request.
  static tl::unexpected<Error> refused(int error);

  // The EVD calls these when it takes a completion off the CQ and when it delivers the completion.
  void completed(WorkRequest& request, ibv_wc_status status, bool delivers);
  void delivered(const WorkRequest& request);
  // The same for the success of a fast request.
  void completed_fast(const WorkRequest& request) {
    ring_of(request).complete_for_delivery(request);
    if (draining()) [[unlikely]]
      connection_.notify();
  }
  void delivered_fast(const WorkRequest& request) {
    WorkRequestRing& ring = ring_of(request);
    ring.release_to(ring.deliver(request));
  }
  // Both in one call, when no other completion of that ring waits for delivery.
  void completed_and_delivered_fast(const WorkRequest& request) {
    ring_of(request).complete_and_deliver(request);
    if (draining()) [[unlikely]]
      connection_.notify();
  }

  // For EVDs, about a request in one of the EP's own rings.
  FlushLink& flush_link_of(const WorkRequest& request) {
    return request.operation == DtoOperation::kReceive ? flush_receives_ : flush_requests_;
  }
  std::array<FlushLink*, 2> flush_links() { return {&flush_receives_, &flush_requests_}; }

  // The first of the windows whose last bind was posted here. The IA's WindowTable owns the list.
  Rmr*& windows() { return windows_; }

  EpCounterSet& counters() { return counters_; }

 private:
  friend class Arena<Ep>;
  Ep(Ia& ia, Pz* pz, const EpEvds& evds, const EpAttr& attr, Srq* srq);

  static Result<verbs::Qp> create_qp(Ep& ep, Pz& pz, const EpEvds& evds, const EpAttr& attr, uint32_t& max_inline);
  // True if a flushed request means that the device, and not this provider, put the queue pair into the error state.
  bool flush_is_the_devices() const;
  static uint32_t allowed_flags(uint32_t ep_flags) {
    return ep_flags & kUnsignalled ? kAllCompletionFlags : kAllCompletionFlags & ~uint32_t{kUnsignalled};
  }
  Result<> empty_cqs();
  Result<> make_room_to_flush();
  void give_back_room_to_flush();
  void flush_receives();
  // True if the device does not flush posted requests, so that the EVD must flush them and the request stays here.
  bool is_given_up() const;
  bool keep_from_device(WorkRequest& request) const;
  // Called after a post. The fence pairs with those in shut_down() and give_up_device(): one of the two functions sees
  // the other's change.
  bool has_ended_meanwhile() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return state() == EpState::kDisconnected;
  }
  void flush_given_up(Evd* evd, FlushLink& link);
  void give_up_device();

  Result<> post_request(ibv_send_wr& wr, std::span<const ibv_sge> segments, uint64_t cookie, DtoOperation operation,
                        uint32_t flags, Rmr* window = nullptr);
  Result<bool> find_room(DtoOperation operation, uint32_t flags, std::unique_lock<OptionalMutex>& guard);
  // Gives the request CQ back the spare entries of requests that never completed.
  void give_back_spares();
  int submit(ibv_send_wr& wr);
  Result<> post_write(ibv_send_wr& wr, std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                      DtoOperation operation, uint32_t flags);
  Result<> check_can_request(DtoOperation operation) const;
  Result<> check_can_request_slowly(DtoOperation operation) const;
  Result<> check_can_receive(size_t segment_count, uint32_t flags) const;
  bool may_be_fast(DtoOperation operation, uint32_t flags) const;
  // True if the data of the segments may go inline. The CPU then copies it and the device checks no lmr_context, so
  // each segment must lie in a region of the EP's zone, at the CPU's addresses.
  bool may_copy(std::span<const ibv_sge> segments);
  bool learn_source(const ibv_sge& segment);
  bool is_in_source(const ibv_sge& segment, uint64_t length) const;
  bool are_in_source(const ibv_sge* segments, int count, uint64_t length) const;
  Result<> check_request(std::span<const ibv_sge> segments, uint32_t max_segments, uint32_t flags) const;
  void maintain_before_post(const WorkRequest& request, WorkRequestRing& ring, std::span<const ibv_sge> segments,
                            bool for_cpu);
  WorkRequestRing& ring_of(const WorkRequest& request) {
    return request.operation == DtoOperation::kReceive ? receives_ : requests_;
  }
  // Releases the requests before end. On a device that is not coherent, the CPU then sees what the device wrote.
  void release(WorkRequestRing& ring, uint32_t end);

  void signal_last_request();
  uint64_t bytes_until_progress(uint32_t sequence);
  void choose_paths() {
    request_needs_slow_path_ = needs_slow_path_ || !evds_.request;
    // Without a protection zone there is no queue pair.
    recv_needs_slow_path_ = needs_slow_path_ || srq_ || attr_.datagrams || !evds_.recv || !pz_;
  }

  Pz* pz_;
  Srq* const srq_;
  EpEvds evds_;
  Comm comm_;
  std::atomic<bool> configured_;
  bool has_left_evds_ = false;  // reports may wait in a connect EVD that it has no more
  EpAttr attr_;
  std::atomic<EpState> state_ = EpState::kUnconnected;
  OptionalMutex post_mutex_;

  // True if posting takes a lock or maintains caches.
  const bool needs_slow_path_;
  // The first tests of post_request_fast() and post_recv_fast(): true also if the EP lacks the EVD, and if receives
  // come from elsewhere or are datagrams.
  bool request_needs_slow_path_ = true;
  bool recv_needs_slow_path_ = true;
  // Requests prepared for post_request_fast() and post_recv_fast(), which change only the variable fields.
  ibv_send_wr fast_request_{};
  ibv_recv_wr fast_recv_{};
  ibv_send_wr* refused_request_ = nullptr;
  ibv_recv_wr* refused_recv_ = nullptr;

  Rmr* windows_ = nullptr;

  WorkRequestRing requests_;
  WorkRequestRing receives_;
  FlushLink flush_requests_{requests_};
  FlushLink flush_receives_{receives_};
  std::atomic<bool> device_has_flushed_ = false;  // the device will flush no more
  verbs::Qp qp_;                                  // null without a PZ
  uint32_t max_inline_ = 0;                       // bytes
  // The last region from which the CPU has copied. Valid while the table of regions has these departures.
  struct Source {
    uint32_t context = 0;
    uint32_t departures = 0;
    uint64_t begin = 0;
    uint64_t length = 0;
  } source_;
  std::atomic<uint32_t> room_to_flush_ = 0;  // entries of the request CQ for suppressed requests
  uint32_t unsignalled_run_ = 0;             // suppressed requests since the last signalled one
  std::atomic<bool> draining_ = false;       // a graceful disconnect waits for all requests before drain_target_
  uint32_t drain_target_ = 0;
  uint32_t drain_progress_ = 0;    // the requests that had completed,
  int64_t drain_progress_ns_ = 0;  // and when that number was first seen

  EpCounterSet counters_;
  Connection connection_;
  const std::unique_ptr<Datagrams> datagrams_;
};

}  // namespace dapple::udapl
