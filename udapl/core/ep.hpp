// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Endpoint: one RC queue pair, the requests posted to it, and its connection; or one UD queue pair and the addresses it
// sends to (ep_datagrams.cpp).
//
// Threads: the consumer serializes posting unless the IA is thread-safe. Connection state changes under the control
// mutex; the data path reads it without the mutex.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ibverbs-glue/rdma_cm.hpp"
#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/address_table.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/comm.hpp"
#include "udapl/core/connection_manager.hpp"
#include "udapl/core/counters.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/flush_list.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/work_request_ring.hpp"

namespace dapple::udapl {

class Cr;
class Evd;
class Pz;
class Rsp;
class Rmr;
class Srq;
class UdConnection;
struct UdReceived;

// The data of a datagram endpoint. The control mutex guards it, except that the data path reads addresses without it.
struct UdState {
  AddressTable addresses;
  std::vector<UdConnection*> connections;
  bool established = false;  // at least one was
};

// DAT_EP_STATE; 1.2 and 2.0 agree on these values.
enum class EpState : uint8_t {
  kUnconnected = 0,
  kUnconfiguredUnconnected = 1,
  kReserved = 2,
  kUnconfiguredReserved = 3,
  kPassiveConnectionPending = 4,
  kUnconfiguredPassive = 5,
  kActiveConnectionPending = 6,
  kTentativeConnectionPending = 7,
  kUnconfiguredTentative = 8,
  kConnected = 9,
  kDisconnectPending = 10,
  kDisconnected = 11,
  kCompletionPending = 12,
  kDatagrams = 13,  // our own state, which DAT shows as kConnected; it keeps the data path of connections away from
                    // datagram endpoints
};

// DAT_COMPLETION_FLAGS of a posted request.
enum CompletionFlag : uint32_t {
  kSuppress = 0x01,
  kSolicitedWait = 0x02,
  kUnsignalled = 0x04,
  kBarrierFence = 0x08,
  kEvdThreshold = 0x10,
  kAllCompletionFlags = 0x1f,
};

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
  uint32_t max_rdma_read_iov = 4;
  uint32_t max_rdma_write_iov = 4;
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
  static constexpr size_t kMaxConnectData = 56;  // bytes: the IBTA's 92 without rdma_cm's header
  static constexpr size_t kMaxAcceptData = 196;  // bytes

  // Life cycle. The caller holds the control mutex. With pz null the queue pair is made by configure(). With an srq,
  // which needs a receive EVD, the EP takes its receives from there.
  static Result<Ep*> create(Ia& ia, Pz* pz, const EpEvds& evds, const EpAttr& attr, Srq* srq = nullptr);
  // INVALID_STATE while a service point or a connection request holds the EP.
  Result<> check_can_free() const;
  // Ends a connection abruptly, without an event. Drops completions that were not delivered.
  static Result<> free(Ep& ep);
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
  // The state, without the unconfigured ones.
  EpState state() const { return state_.load(std::memory_order_acquire); }
  // The number of receives posted to this EP and not dequeued.
  uint32_t outstanding_receives() const { return receives_.count(); }
  // An EP without a PZ or without a connect EVD is unconfigured; connecting it needs both.
  EpState reported_state() const;
  bool recv_idle() const { return receives_.empty(); }
  bool request_idle() const { return requests_.empty(); }
  const sockaddr* local_address() const;
  const sockaddr* remote_address() const;  // null before the first attempt to connect
  uint64_t local_port() const;
  uint64_t remote_port() const;

  // Connection. The caller holds the control mutex; results arrive as events on the connect EVD. timeout is in
  // microseconds.
  Result<> connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                   std::span<const uint8_t> private_data);
  Result<> check_unconnected() const;
  Result<> check_connected() const;
  Result<> check_can_accept(const Cr& request, size_t private_data_size) const;
  // After the checks have passed, a failure is an ACCEPT_COMPLETION_ERROR event, because the request cannot be
  // restored.
  void accept(verbs::CmId id, uint8_t responder_resources, uint8_t initiator_depth,
              std::span<const uint8_t> private_data);
  void fail_accept();
  // A datagram endpoint has nothing to disconnect: the call succeeds, as it does in the original provider.
  Result<> disconnect(bool abrupt);

  // Datagrams. The caller holds the control mutex. After the checks have passed, a failure is an event.
  bool is_datagrams() const { return ud_ != nullptr; }
  uint32_t qp_num() const { return qp_ ? qp_->qp_num : 0; }
  // Turns the request into a connection that waits for an answer. Throws std::bad_alloc with nothing changed.
  UdConnection& take_datagrams(verbs::CmId& request, const UdReceived& message, std::span<const uint8_t> reply);
  void answer_datagrams(UdConnection& connection);
  // INVALID_PARAMETER for anything but a connection or an address of this endpoint. The consumer ensures that no
  // datagram to the address is still to be sent.
  Result<> free_connection(const void* connection);
  Result<> free_address(ibv_ah* address);
  // Called by the endpoint's connections. The first: a connection has an address, null when there was no memory for it.
  // The second: a connection has ended.
  ibv_ah* add_address(verbs::Ah address);
  void on_datagrams(UdConnection& connection, EventKind kind);

  // A reserved service point reserves an UNCONNECTED EP, and releases it.
  void reserve() { set_state(EpState::kReserved); }
  void release_reservation() { set_state(EpState::kUnconnected); }
  void set_reservation(Rsp* rsp);
  // Called when a connection request takes this EP, which was made for it or reserved, and when it releases the EP.
  void await_acceptance(Cr& request, bool made_for_it);
  void forget_request();

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
  // 64-bit atomics on the remote word. The old value arrives in the first 8 bytes of result. Operands and values are in
  // the CPU's byte order.
  Result<> post_fetch_and_add(const ibv_sge& result, uint64_t cookie, const RemoteBuffer& remote, uint64_t add,
                              uint32_t flags);
  Result<> post_compare_and_swap(const ibv_sge& result, uint64_t cookie, const RemoteBuffer& remote, uint64_t compare,
                                 uint64_t swap, uint32_t flags);
  // Sends to a peer whose address belongs to this endpoint; INVALID_HANDLE on an endpoint for connections.
  Result<> post_send_ud(std::span<const ibv_sge> segments, uint64_t cookie, ibv_ah* address, uint32_t qp_num,
                        uint32_t flags);
  // The consumer's Send, which also invalidates the context of a window at the peer.
  Result<> post_send_with_invalidate(std::span<const ibv_sge> segments, uint64_t cookie, uint32_t context,
                                     uint32_t flags);
  // Reads into memory to which a window of ours is bound.
  Result<> post_rdma_read_to_rmr(const RemoteBuffer& sink, uint64_t cookie, const RemoteBuffer& remote, uint32_t flags);
  // For Rmr: a bind, or an invalidation, that completes with a bind event; and an invalidation without an event.
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

  // Has the connection manager look at a graceful disconnect again. Out of line, because the data path rarely calls it.
  void tell_progress();
  // The EVD calls these when it takes a completion off the CQ and when it delivers the completion.
  void completed(WorkRequest& request, ibv_wc_status status, bool delivers);
  void delivered(const WorkRequest& request);
  // The same for the success of a fast request.
  void completed_fast(const WorkRequest& request) {
    ring_of(request).complete_for_delivery(request);
    if (draining_.load(std::memory_order_acquire)) [[unlikely]]
      tell_progress();
  }
  void delivered_fast(const WorkRequest& request) {
    WorkRequestRing& ring = ring_of(request);
    ring.release_to(ring.deliver(request));
  }
  // Both in one call, when no other completion of that ring waits for delivery.
  void completed_and_delivered_fast(const WorkRequest& request) {
    ring_of(request).complete_and_deliver(request);
    if (draining_.load(std::memory_order_acquire)) [[unlikely]]
      tell_progress();
  }

  // For EVDs, about a request in one of the EP's own rings.
  FlushLink& flush_link_of(const WorkRequest& request) {
    return request.operation == DtoOperation::kReceive ? flush_receives_ : flush_requests_;
  }
  std::array<FlushLink*, 2> flush_links() { return {&flush_receives_, &flush_requests_}; }

  ConnectionManager::Client& client() { return client_; }
  // The first of the windows whose last bind was posted here. The IA's WindowTable owns the list.
  Rmr*& windows() { return windows_; }

  EpCounterSet& counters() { return counters_; }
  CounterBases<kEpCounters>& counter_bases() { return counter_bases_; }

  // The connection manager's thread calls these with the control mutex held.
  void on_connection_event(const verbs::CmEvent& event);
  void on_device_event(ibv_event_type type);
  void on_attention();
  void on_deadline();

 private:
  friend class Arena<Ep>;
  Ep(Ia& ia, Pz* pz, const EpEvds& evds, const EpAttr& attr, Srq* srq);

  static Result<verbs::Qp> create_qp(Ep& ep, Pz& pz, const EpEvds& evds, const EpAttr& attr, uint32_t& max_inline);
  // True if a flushed request means that the device put the queue pair into the error state, not we.
  bool flush_is_the_devices() const;
  static uint32_t allowed_flags(uint32_t ep_flags) {
    return ep_flags & kUnsignalled ? kAllCompletionFlags : kAllCompletionFlags & ~uint32_t{kUnsignalled};
  }
  static int bring_up_datagrams(ibv_qp* qp, const Ia& ia);
  Result<> check_configured() const;
  Result<> set_qp_attributes(ibv_qp_state target, const rdma_conn_param* agreed);
  void fail_qp();
  Result<> empty_cqs();
  Result<> make_room_to_flush();
  void give_back_room_to_flush();
  bool qp_has_failed() const;
  void flush_receives();
  // True if the device does not flush posted requests, so that the EVD must flush them and the request stays here.
  bool is_given_up() const;
  bool keep_from_device(WorkRequest& request) const;
  bool has_ended_meanwhile() const;
  void flush_given_up(Evd* evd, FlushLink& link);
  void give_up_device();

  Result<> post_request(ibv_send_wr& wr, std::span<const ibv_sge> segments, uint64_t cookie, DtoOperation operation,
                        uint32_t flags, Rmr* window = nullptr);
  Result<bool> find_room(DtoOperation operation, uint32_t flags, std::unique_lock<OptionalMutex>& guard);
  // Flushes the requests that were destroyed with the queue pair.
  void give_back_spares();
  int submit(ibv_send_wr& wr);
  Result<> post_write(ibv_send_wr& wr, std::span<const ibv_sge> segments, uint64_t cookie, const RemoteBuffer& remote,
                      DtoOperation operation, uint32_t flags);
  Result<> post_atomic(ibv_send_wr& wr, const ibv_sge& result, uint64_t cookie, const RemoteBuffer& remote,
                       DtoOperation operation, uint32_t flags);
  Result<> check_can_request(DtoOperation operation) const;
  Result<> check_can_request_slowly(DtoOperation operation) const;
  bool may_be_fast(uint32_t flags) const;
  void maintain_before_post(const WorkRequest& request, WorkRequestRing& ring, std::span<const ibv_sge> segments,
                            bool for_cpu);
  WorkRequestRing& ring_of(const WorkRequest& request) {
    return request.operation == DtoOperation::kReceive ? receives_ : requests_;
  }
  // Releases the requests before end. On a device that is not coherent, the CPU then sees what the device wrote.
  void release(WorkRequestRing& ring, uint32_t end);

  void set_state(EpState state) { state_.store(state, std::memory_order_release); }
  Result<> resolve_address();
  Result<> resolve_route();
  Result<> send_connect();
  void on_active_event(const verbs::CmEvent& event);
  void on_passive_event(const verbs::CmEvent& event);
  void answer_response(const verbs::CmEvent& event);
  void answer_rejection(const verbs::CmEvent& event);
  void establish(std::span<const uint8_t> private_data);
  void keep_private_data(std::span<const uint8_t> data);
  void report(EventKind kind);
  void end_connection(EventKind kind);
  void fail_connect(EventKind kind, const char* what, int status);
  void break_connection();
  void drain();
  void signal_last_request();
  uint64_t bytes_until_progress(uint32_t sequence);
  bool drained() const;
  void start_disconnect();
  // Ends the connection. False if that took destroying the id: then this connection has no more events.
  bool tell_peer();
  void set_deadline(int64_t deadline_ns);
  Result<> connect_datagrams(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                             std::span<const uint8_t> private_data);
  void update_datagrams();
  void drop_datagrams(uint32_t former_qp_num);
  void serve_datagram_deadlines();
  bool is_up() const;
  bool recv_needs_slow_path() const { return needs_slow_path_ || srq_ || attr_.datagrams || !evds_.recv; }
  void remember_peer(const sockaddr* address, uint64_t port);
  Error state_error() const;

  Pz* pz_;
  Srq* const srq_;
  EpEvds evds_;
  Comm comm_;
  std::atomic<bool> configured_;
  Rsp* reservation_ = nullptr;  // the last service point this EP was reserved for
  Cr* request_ = nullptr;       // the request that holds this EP
  EpAttr attr_;
  std::atomic<EpState> state_ = EpState::kUnconnected;
  OptionalMutex post_mutex_;

  // The first test of post_request_fast() and post_recv_fast(). True if posting takes a lock or maintains caches, if
  // the EP cannot post receives, or if it is for datagrams.
  const bool needs_slow_path_;
  bool recv_needs_slow_path_;
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
  std::atomic<bool> device_has_flushed_ = false;  // what it will
  verbs::Qp qp_;                                  // null without a PZ
  uint32_t max_inline_ = 0;                       // bytes
  std::atomic<uint32_t> room_to_flush_ = 0;       // entries of the request CQ for suppressed requests
  uint32_t unsignalled_run_ = 0;                  // suppressed requests since the last signalled one
  std::atomic<bool> draining_ = false;            // a graceful disconnect waits for all requests before drain_target_
  uint32_t drain_target_ = 0;
  uint32_t drain_progress_ = 0;    // the requests that had finished,
  int64_t drain_progress_ns_ = 0;  // and when that number was first seen
  std::atomic<bool> broken_ = false;

  EpCounterSet counters_;
  CounterBases<kEpCounters> counter_bases_{};
  const std::unique_ptr<UdState> ud_;  // null on an EP for connections

  // The connection being set up.
  verbs::CmId id_;
  ConnectionManager::Client client_;
  int arp_retries_left_ = 0;
  int route_retries_left_ = 0;
  sockaddr_storage remote_{};
  uint64_t local_port_ = 0;
  uint64_t remote_port_ = 0;
  std::array<uint8_t, verbs::kMaxPrivateData> private_data_{};  // ours until sent, the peer's once it arrives
  size_t private_data_size_ = 0;
};

}  // namespace dapple::udapl
