// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The connection of an endpoint, over rdma_cm. The queue pair belongs to us, not to the id, so we make its transitions
// here: librdmacm then reports CONNECT_RESPONSE on the active side and leaves the rest to us.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "udapl/core/connect_log.hpp"
#include "udapl/core/connection_manager.hpp"
#include "udapl/core/cr.hpp"
#include "udapl/core/device_order.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/psp.hpp"
#include "udapl/core/ud_message.hpp"

namespace dapple::udapl {
namespace {

constexpr int kRejectedByConsumer = 28;           // IBTA 12.6.7.2: the reason code of a consumer's reject
constexpr size_t kRejectHeaderSize = 4;           // bytes before the consumer's private data
constexpr int64_t kDrainPauseNs = 10'000'000;     // between two checks of the requests that a graceful disconnect
                                                  // awaits
constexpr int64_t kDrainLimitNs = 2'000'000'000;  // how long it waits while no request completes,
constexpr int64_t kDrainLimitNsPerByte = 60;      // how much longer for requests of many bytes: 16 MB take a second,
constexpr int64_t kReplyLimitNs = 5'000'000'000;  // and how long for the peer's answer
constexpr int64_t kRefusalNs = 20'000'000;        // the time that a refusal may take to reach its receiver

}  // namespace

Result<> Ep::connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                     std::span<const uint8_t> private_data) {
  if (ud_) return connect_datagrams(remote, conn_qual, timeout_us, private_data);
  if (state() != EpState::kUnconnected) return tl::unexpected(state_error());
  if (auto ready = check_configured(); !ready) return ready;
  if (private_data.size() > kMaxConnectData) return fail(Type::kInvalidParameter, Subtype::kPrivateData);
  if (remote->sa_family != ia().address()->sa_family) return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);

  id_ = verbs::create_cm_id(ConnectionManager::instance().channel(), static_cast<Object*>(this));
  if (!id_) return fail_errno(errno);
  remember_peer(remote, conn_qual);
  private_data_size_ = private_data.size();
  std::copy(private_data.begin(), private_data.end(), private_data_.begin());
  const Settings& settings = ia().settings();
  arp_retries_left_ = settings.arp_retries;
  route_retries_left_ = settings.route_retries;
  if (settings.traffic_class >= 0) {
    auto traffic_class = static_cast<uint8_t>(settings.traffic_class);
    rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof traffic_class);
  }
  if (auto resolving = resolve_address(); !resolving) {
    id_.reset();
    remote_ = {};
    return resolving;
  }
  counters_.add(EpCounter::kConnect);
  set_state(EpState::kActiveConnectionPending);
  set_deadline(timeout_us == Evd::kInfinite ? kNever : now_ns() + int64_t{timeout_us} * 1000);
  return {};
}

void Ep::remember_peer(const sockaddr* address, uint64_t port) {
  remote_ = {};
  std::memcpy(&remote_, address, verbs::address_size(address));
  remote_port_ = port;
}

Result<> Ep::resolve_address() {
  sockaddr_storage source{};
  std::memcpy(&source, ia().address(), verbs::address_size(ia().address()));
  sockaddr_storage target = remote_;
  reinterpret_cast<sockaddr_in&>(target).sin_port = htons(to_port(remote_port_));
  if (rdma_resolve_addr(id_.get(), reinterpret_cast<sockaddr*>(&source), reinterpret_cast<sockaddr*>(&target),
                        ia().settings().arp_timeout_ms)) {
    return fail_errno(errno);
  }
  return {};
}

Result<> Ep::resolve_route() {
  if (rdma_resolve_route(id_.get(), ia().settings().route_timeout_ms)) return fail_errno(errno);
  return {};
}

Result<> Ep::send_connect() {
  rdma_conn_param param{};
  param.private_data = private_data_.data();
  param.private_data_len = static_cast<uint8_t>(private_data_size_);
  param.responder_resources = static_cast<uint8_t>(std::min(attr_.max_rdma_read_in, 255U));
  param.initiator_depth = static_cast<uint8_t>(std::min(attr_.max_rdma_read_out, 255U));
  param.flow_control = 1;
  param.retry_count = ia().settings().retry_count;
  param.rnr_retry_count = ia().settings().rnr_retry_count;
  param.qp_num = qp_->qp_num;
  if (rdma_connect(id_.get(), &param)) return fail_errno(errno);
  ia().counters().add(IaCounter::kReqTx);
  return {};
}

// Moves the queue pair to a state with the connection manager's attributes; on the passive side the depths of RDMA
// Reads are those that we are about to answer.
Result<> Ep::set_qp_attributes(ibv_qp_state target, const rdma_conn_param* agreed) {
  ibv_qp_attr attr{};
  int mask = 0;
  attr.qp_state = target;
  if (rdma_init_qp_attr(id_.get(), &attr, &mask)) return fail_errno(errno);
  const Settings& settings = ia().settings();
  if (mask & IBV_QP_MIN_RNR_TIMER) attr.min_rnr_timer = settings.min_rnr_timer;
  if ((mask & IBV_QP_TIMEOUT) && settings.ack_timeout >= 0) attr.timeout = static_cast<uint8_t>(settings.ack_timeout);
  if (mask & IBV_QP_PATH_MTU) attr.path_mtu = std::min(attr.path_mtu, settings.path_mtu);
  if ((mask & IBV_QP_AV) && settings.service_level >= 0) attr.ah_attr.sl = static_cast<uint8_t>(settings.service_level);
  if ((mask & IBV_QP_AV) && settings.hop_limit >= 0) {
    attr.ah_attr.grh.hop_limit = static_cast<uint8_t>(settings.hop_limit);
  }
  if (agreed && (mask & IBV_QP_MAX_DEST_RD_ATOMIC)) attr.max_dest_rd_atomic = agreed->responder_resources;
  if (agreed && (mask & IBV_QP_MAX_QP_RD_ATOMIC)) attr.max_rd_atomic = agreed->initiator_depth;
  if (int error = ibv_modify_qp(qp_.get(), &attr, mask)) return fail_errno(error);
  return {};
}

Result<> Ep::check_can_accept(const Cr& request, size_t private_data_size) const {
  if (request.is_datagrams() != is_datagrams()) return fail(Type::kInvalidHandle, Subtype::kHandleEp);
  // An endpoint for datagrams has many peers.
  const bool takes_more =
      ud_ && (is_up() || state() == EpState::kActiveConnectionPending || state() == EpState::kCompletionPending);
  if (request_ != &request && state() != EpState::kUnconnected && !takes_more) return tl::unexpected(state_error());
  if (auto ready = check_configured(); !ready) return ready;
  if (private_data_size > (ud_ ? UdMessage::kMaxReplyData : kMaxAcceptData)) {
    return fail(Type::kInvalidParameter, Subtype::kPrivateData);
  }
  return {};
}

void Ep::accept(verbs::CmId id, uint8_t responder_resources, uint8_t initiator_depth,
                std::span<const uint8_t> private_data) {
  id_ = std::move(id);
  id_->context = static_cast<Object*>(this);
  remember_peer(rdma_get_peer_addr(id_.get()), ntohs(rdma_get_dst_port(id_.get())));
  local_port_ = ntohs(rdma_get_src_port(id_.get()));

  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = static_cast<uint8_t>(std::min<uint32_t>(responder_resources, attr_.max_rdma_read_in));
  param.initiator_depth = static_cast<uint8_t>(std::min<uint32_t>(initiator_depth, attr_.max_rdma_read_out));
  param.flow_control = 1;
  param.rnr_retry_count = ia().settings().rnr_retry_count;
  param.qp_num = qp_->qp_num;

  set_state(EpState::kCompletionPending);
  const bool accepted = set_qp_attributes(IBV_QPS_INIT, nullptr) && set_qp_attributes(IBV_QPS_RTR, &param) &&
                        set_qp_attributes(IBV_QPS_RTS, &param) && rdma_accept(id_.get(), &param) == 0;
  if (!accepted) return fail_accept();
  ia().counters().add(IaCounter::kRepTx);
}

void Ep::fail_accept() {
  id_.reset();  // the peer, which still waits, sees a rejection
  end_connection(EventKind::kAcceptCompletionError);
}

Result<> Ep::disconnect(bool abrupt) {
  counters_.add(EpCounter::kDisconnect);
  if (ud_) return {};
  switch (state()) {
    case EpState::kDisconnected:
      return {};
    case EpState::kActiveConnectionPending:
    case EpState::kCompletionPending:
      id_.reset();
      end_connection(EventKind::kDisconnected);
      return {};
    case EpState::kDisconnectPending:
      if (!abrupt) return {};
      break;
    case EpState::kConnected:
      break;
    default:
      return tl::unexpected(state_error());
  }
  if (abrupt) {
    fail_qp();
    tell_peer();
    end_connection(EventKind::kDisconnected);
    return {};
  }
  // Graceful: posted requests complete first. Nothing more can be posted from here on.
  set_state(EpState::kDisconnectPending);
  {
    std::lock_guard guard(post_mutex_);
    drain_target_ = requests_.posted();
  }
  // The order matters: completed() runs under the EVD's lock, so a thread that finishes a request after the check below
  // notifies us.
  draining_.store(true, std::memory_order_release);
  drain_progress_ = requests_.completed();
  drain_progress_ns_ = now_ns();
  drain();
  return {};
}

// Takes the completions off the CQ, since the consumer may have no reason to. Ends the connection when all requests
// have completed or no more of them complete.
void Ep::drain() {
  if (evds_.request) {
    signal_last_request();
    evds_.request->reap();
  }
  if (drained()) return start_disconnect();
  const int64_t now = now_ns();
  const uint32_t finished = requests_.completed();
  if (std::exchange(drain_progress_, finished) != finished) drain_progress_ns_ = now;
  const auto limit_ns = kDrainLimitNs + static_cast<int64_t>(bytes_until_progress(finished)) * kDrainLimitNsPerByte;
  if (now - drain_progress_ns_ >= limit_ns) return start_disconnect();
  set_deadline(now + kDrainPauseNs);
}

// The number of requests from this one up to the first with its own completion.
uint64_t Ep::bytes_until_progress(uint32_t sequence) {
  uint64_t bytes = 0;
  for (; sequence != drain_target_; ++sequence) {
    const WorkRequest& request = requests_.at(sequence);
    if (request.operation != DtoOperation::kBind) bytes += request.length;
    if (!request.suppressed || request.spare) break;
  }
  return bytes;
}

// A suppressed request is known to have completed only when a later one has. So an RDMA Write of 0 bytes follows the
// last one. The device checks no key for it, and no consumer sees it. DEVIATION graceful disconnect on iWARP, except
// siw: a device might check the key, so a time-out is used instead.
void Ep::signal_last_request() {
  std::lock_guard guard(post_mutex_);
  if (unsignalled_run_ == 0 || (ia().iwarp() && !ia().is_siw()) || requests_.full() || !evds_.request->take_spare())
    return;
  WorkRequest& request = requests_.next();
  request.cookie = request.length = 0;
  request.ep = this;
  request.operation = DtoOperation::kInvalidate;  // the write makes no event, flushed or not
  request.suppressed = request.unsignalled = request.spare = true;
  request.fast = false;
  request.num_segments = 0;
  ibv_send_wr wr{};
  wr.wr_id = wr_id_of(request);
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  given_to_device(&request);
  if (submit(wr)) return evds_.request->give_back_spare();
  unsignalled_run_ = 0;
  requests_.post();
  drain_target_ = requests_.posted();
}

bool Ep::drained() const {
  return static_cast<int32_t>(requests_.completed() - drain_target_) >= 0;
}

void Ep::start_disconnect() {
  draining_.store(false, std::memory_order_release);
  if (tell_peer()) {
    set_deadline(now_ns() + kReplyLimitNs);
  } else {
    end_connection(EventKind::kDisconnected);  // the peer will not reply
  }
}

bool Ep::tell_peer() {
  ia().counters().add(IaCounter::kDreqTx);
  if (rdma_disconnect(id_.get()) == 0) return true;
  id_.reset();
  return false;
}

void Ep::set_deadline(int64_t deadline_ns) {
  ConnectionManager::instance().set_deadline(*this, deadline_ns);
}

void Ep::report(EventKind kind) {
  if (!evds_.connect) return;
  const bool has_data = kind == EventKind::kEstablished || kind == EventKind::kPeerRejected;
  Event event{};
  event.kind = kind;
  event.connection = {this, has_data && private_data_size_ ? private_data_.data() : nullptr,
                      has_data ? static_cast<uint32_t>(private_data_size_) : 0};
  evds_.connect->post(event);
}

void Ep::end_connection(EventKind kind) {
  const bool was_up = is_up();
  set_deadline(kNever);
  draining_.store(false, std::memory_order_release);
  // A queue pair in ERR flushes what is posted, receives included, with the consumer's cookies. The state is set first:
  // then either this function finds a receive that is posted meanwhile, or its poster sees the state. The state also
  // lets requests be posted, but a queue pair that was never connected refuses them before ERR.
  if (!was_up) fail_qp();
  set_state(EpState::kDisconnected);
  fail_qp();
  give_up_device();
  report(kind);
  // Reports an EP that takes no more receives from a shared queue. Consumers know InfiniBand's event of the last work
  // request for that. We make the report here because not every device has that event.
  if (srq_ && was_up) ia().report_async(EventKind::kAsyncEpBroken, *this, 0);
}

void Ep::keep_private_data(std::span<const uint8_t> data) {
  private_data_size_ = data.size();
  std::copy(data.begin(), data.end(), private_data_.begin());
}

void Ep::establish(std::span<const uint8_t> private_data) {
  set_deadline(kNever);
  keep_private_data(private_data);
  set_state(EpState::kConnected);
  report(EventKind::kEstablished);
  // A request may have failed before the connection manager's last message arrived.
  if (broken_.load(std::memory_order_acquire)) ConnectionManager::instance().notify(*this);
}

// The peer accepted: move the queue pair to RTS, then tell the peer that we are ready.
void Ep::answer_response(const verbs::CmEvent& event) {
  // INIT is repeated: only now does the connection manager know the agreed remote access rights.
  const bool up = set_qp_attributes(IBV_QPS_INIT, nullptr) && set_qp_attributes(IBV_QPS_RTR, nullptr) &&
                  set_qp_attributes(IBV_QPS_RTS, nullptr) && rdma_establish(id_.get()) == 0;
  ia().counters().add(IaCounter::kRepRx);
  if (up) {
    ia().counters().add(IaCounter::kRtuTx);
    ia().counters().add(IaCounter::kActiveEst);
    establish({event.private_data.data(), event.private_data_size});
  } else {
    const int failure = errno;
    id_.reset();  // tells the peer
    fail_connect(EventKind::kUnreachable, "setting up the queue pair", -failure);
  }
}

void Ep::answer_rejection(const verbs::CmEvent& event) {
  // iWARP has no reason code: there only a consumer's reject carries data. On InfiniBand a request that was dropped
  // unanswered has the consumer's reason code too, but no header.
  const uint8_t* header = event.private_data.data();
  const bool marked = event.private_data_size >= kRejectHeaderSize &&
                      std::any_of(header, header + kRejectHeaderSize, [](uint8_t byte) { return byte != 0; });
  if (!marked || (!ia().iwarp() && event.status != kRejectedByConsumer)) {
    ia().counters().add(IaCounter::kErrRejRx);
    return fail_connect(EventKind::kNonPeerRejected, rdma_event_str(event.type), event.status);
  }
  ia().counters().add(IaCounter::kUserRejRx);
  keep_private_data({event.private_data.data() + kRejectHeaderSize, event.private_data_size - kRejectHeaderSize});
  fail_connect(EventKind::kPeerRejected, rdma_event_str(event.type), event.status);
}

// status: the connection manager's, or an errno below 0.
void Ep::fail_connect(EventKind kind, const char* what, int status) {
  log_failed_connect(ia(), reinterpret_cast<const sockaddr*>(&remote_), remote_port_, what, status);
  end_connection(kind);
}

void Ep::on_connection_event(const verbs::CmEvent& event) {
  switch (state()) {
    case EpState::kActiveConnectionPending:
      return on_active_event(event);
    case EpState::kCompletionPending:
      return on_passive_event(event);
    case EpState::kConnected:
    case EpState::kDisconnectPending:
      break;
    default:
      return;  // the end of a connection that we have ended already
  }
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:  // the peer had accepted, and was gone before our last message arrived
    case RDMA_CM_EVENT_DISCONNECTED: {
      ia().counters().add(event.type == RDMA_CM_EVENT_REJECTED ? IaCounter::kErrRejRx : IaCounter::kDreqRx);
      // A peer that has refused a request disconnects. Its message may arrive before the consumer has seen the refusal.
      const bool broken = state() == EpState::kConnected && qp_has_failed();
      rdma_disconnect(id_.get());  // the reply
      end_connection(broken ? EventKind::kBroken : EventKind::kDisconnected);
      break;
    }
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      end_connection(EventKind::kBroken);
      break;
    default:
      break;
  }
}

void Ep::on_active_event(const verbs::CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (!resolve_route()) fail_connect(EventKind::kUnreachable, "rdma_resolve_route", -errno);
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
      if (event.status != -ETIMEDOUT || arp_retries_left_-- <= 0 || !resolve_address()) {
        fail_connect(EventKind::kUnreachable, rdma_event_str(event.type), event.status);
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      local_port_ = ntohs(rdma_get_src_port(id_.get()));
      // iWARP: TCP has made a round trip to the peer.
      if (!send_connect()) {
        fail_connect(
            errno == ECONNREFUSED || errno == ECONNRESET ? EventKind::kNonPeerRejected : EventKind::kUnreachable,
            "rdma_connect", -errno);
      }
      break;
    case RDMA_CM_EVENT_ROUTE_ERROR:
      if (event.status != -ETIMEDOUT || route_retries_left_-- <= 0 || !resolve_route()) {
        fail_connect(EventKind::kUnreachable, rdma_event_str(event.type), event.status);
      }
      break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      answer_response(event);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:  // iWARP: the kernel has brought the queue pair up
      ia().counters().add(IaCounter::kRepRx);
      ia().counters().add(IaCounter::kActiveEst);
      establish({event.private_data.data(), event.private_data_size});
      break;
    case RDMA_CM_EVENT_REJECTED:
      answer_rejection(event);
      break;
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      fail_connect(EventKind::kUnreachable, rdma_event_str(event.type), event.status);
      break;
    default:
      break;
  }
}

void Ep::on_passive_event(const verbs::CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ESTABLISHED:
      ia().counters().add(IaCounter::kRtuRx);
      ia().counters().add(IaCounter::kPassiveEst);
      establish({});
      break;
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      fail_accept();
      break;
    default:
      break;
  }
}

void Ep::on_device_event(ibv_event_type type) {
  if (type == IBV_EVENT_COMM_EST) {
    // The first request overtook the connection manager's last message, which may be lost; this event replaces it.
    if (id_) rdma_notify(id_.get(), IBV_EVENT_COMM_EST);
    return;
  }
  ia().report_async(EventKind::kAsyncEpBroken, *this, type);
  // The device tells the peer which of its requests was refused; our disconnect must not overtake that.
  const bool refused = type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_REQ_ERR;
  if (refused && state() == EpState::kConnected && !ia().iwarp()) return set_deadline(now_ns() + kRefusalNs);
  if (is_up()) break_connection();
}

// iWARP's queue pairs go into error as part of any disconnect.
bool Ep::qp_has_failed() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  return !ia().iwarp() && ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
}

bool Ep::is_up() const {
  const EpState now = state();
  return now == EpState::kConnected || now == EpState::kDisconnectPending || now == EpState::kDatagrams;
}

void Ep::break_connection() {
  if (id_) tell_peer();
  end_connection(EventKind::kBroken);
}

void Ep::on_attention() {
  if (is_up() && broken_.exchange(false)) return break_connection();
  if (draining_.load(std::memory_order_acquire) && drained()) start_disconnect();
}

void Ep::on_deadline() {
  if (ud_) return serve_datagram_deadlines();
  switch (state()) {
    case EpState::kActiveConnectionPending:
      ia().counters().add(IaCounter::kErrTimeout);
      id_.reset();
      fail_connect(EventKind::kTimedOut, "the consumer's time-out", -ETIMEDOUT);
      break;
    case EpState::kDisconnectPending:
      if (draining_.load(std::memory_order_acquire)) {
        drain();
      } else {
        end_connection(EventKind::kDisconnected);
      }
      break;
    case EpState::kConnected:
      break_connection();
      break;
    default:
      set_deadline(kNever);
      break;
  }
}

}  // namespace dapple::udapl
