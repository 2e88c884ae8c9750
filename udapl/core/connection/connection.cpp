// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/connection.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "udapl/core/connection/connect_log.hpp"
#include "udapl/core/connection/cr.hpp"
#include "udapl/core/connection/rsp.hpp"
#include "udapl/core/connection/ud_message.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

constexpr int kRejectedByConsumer = 28;           // IBTA 12.6.7.2: the reason code of a consumer's reject
constexpr size_t kRejectHeaderSize = 4;           // bytes before the consumer's private data
constexpr int64_t kDrainPauseNs = 10'000'000;     // between two checks of the requests that a graceful disconnect
                                                  // awaits
constexpr int64_t kReplyLimitNs = 5'000'000'000;  // how long a disconnect waits for the peer's answer
constexpr int64_t kRefusalNs = 20'000'000;        // the time that a refusal may take to reach its receiver

}  // namespace

Connection::Connection(Ep& ep) : ep_(ep), client_(ep) {}

Result<> Connection::connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                             std::span<const uint8_t> private_data) {
  assert(ep_.state() == EpState::kUnconnected && private_data.size() <= kMaxConnectData);
  id_ = ConnectionManager::instance().new_id(ep_);
  if (!id_) return fail_errno(errno);
  remember_peer(remote, conn_qual);
  private_data_.assign(private_data);
  const Settings& settings = ep_.ia().settings();
  arp_retries_left_ = settings.arp_retries;
  route_retries_left_ = settings.route_retries;
  if (settings.traffic_class >= 0) {
    auto traffic_class = static_cast<uint8_t>(settings.traffic_class);
    rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof traffic_class);
  }
  if (auto resolving = resolve_address(); !resolving) {
    id_.reset();
    forget_peer();
    return resolving;
  }
  ep_.enter(EpState::kActiveConnectionPending);
  client_.set_deadline(timeout_us == Evd::kInfinite ? kNever : now_ns() + int64_t{timeout_us} * 1000);
  assert_consistent();
  return {};
}

void Connection::assert_consistent() const {
  [[maybe_unused]] const EpState state = ep_.state();
  assert((request_ != nullptr) ==
         (state == EpState::kPassiveConnectionPending || state == EpState::kTentativeConnectionPending));
  assert(state != EpState::kReserved || reservation_);
  // Datagram endpoints connect without this id.
  assert(state != EpState::kConnected || id_);
  assert(state != EpState::kUnconnected || !id_);
}

const sockaddr* Connection::remote_address() const {
  return remote_.family() ? remote_.get() : nullptr;
}

void Connection::remember_peer(const sockaddr* address, uint64_t port) {
  remote_ = verbs::SocketAddress(address);
  remote_port_ = port;
}

void Connection::forget_peer() {
  remote_ = {};
  remote_port_ = local_port_ = 0;
}

Result<> Connection::resolve_address() {
  verbs::SocketAddress source(ep_.ia().address());
  verbs::SocketAddress target(remote_.get(), to_port(remote_port_));
  if (rdma_resolve_addr(id_.get(), source.get(), target.get(), ep_.ia().settings().arp_timeout_ms)) {
    return fail_errno(errno);
  }
  return {};
}

Result<> Connection::resolve_route() {
  if (rdma_resolve_route(id_.get(), ep_.ia().settings().route_timeout_ms)) return fail_errno(errno);
  return {};
}

Result<> Connection::send_connect() {
  rdma_conn_param param{};
  param.private_data = private_data_.data();
  param.private_data_len = static_cast<uint8_t>(private_data_.size());
  param.responder_resources = static_cast<uint8_t>(std::min(ep_.attr().max_rdma_read_in, 255U));
  param.initiator_depth = static_cast<uint8_t>(std::min(ep_.attr().max_rdma_read_out, 255U));
  param.flow_control = 1;
  param.retry_count = ep_.ia().settings().retry_count;
  param.rnr_retry_count = ep_.ia().settings().rnr_retry_count;
  param.qp_num = ep_.qp_num();
  if (rdma_connect(id_.get(), &param)) return fail_errno(errno);
  ep_.ia().counters().add(IaCounter::kReqTx);
  return {};
}

// Moves the queue pair to a state with the connection manager's attributes. agreed: on the passive side, the answer
// that we are about to send, which has the depths of RDMA Reads; otherwise null.
Result<> Connection::set_qp_attributes(ibv_qp_state target, const rdma_conn_param* agreed) {
  ibv_qp_attr attr{};
  int mask = 0;
  attr.qp_state = target;
  if (rdma_init_qp_attr(id_.get(), &attr, &mask)) return fail_errno(errno);
  const Settings& settings = ep_.ia().settings();
  if (mask & IBV_QP_MIN_RNR_TIMER) attr.min_rnr_timer = settings.min_rnr_timer;
  if ((mask & IBV_QP_TIMEOUT) && settings.ack_timeout >= 0) attr.timeout = static_cast<uint8_t>(settings.ack_timeout);
  if (mask & IBV_QP_PATH_MTU) attr.path_mtu = std::min(attr.path_mtu, settings.path_mtu);
  if ((mask & IBV_QP_AV) && settings.service_level >= 0) attr.ah_attr.sl = static_cast<uint8_t>(settings.service_level);
  if ((mask & IBV_QP_AV) && settings.hop_limit >= 0) {
    attr.ah_attr.grh.hop_limit = static_cast<uint8_t>(settings.hop_limit);
  }
  if (agreed && (mask & IBV_QP_MAX_DEST_RD_ATOMIC)) attr.max_dest_rd_atomic = agreed->responder_resources;
  if (agreed && (mask & IBV_QP_MAX_QP_RD_ATOMIC)) attr.max_rd_atomic = agreed->initiator_depth;
  if (int error = ibv_modify_qp(ep_.qp(), &attr, mask)) return fail_errno(error);
  return {};
}

void Connection::reserve(Rsp& rsp) {
  note_reservation(rsp);
  ep_.enter(EpState::kReserved);
  assert_consistent();
}

void Connection::note_reservation(Rsp& rsp) {
  if (reservation_ && reservation_ != &rsp) reservation_->forget_ep();
  reservation_ = &rsp;
}

void Connection::release([[maybe_unused]] const Rsp& rsp) {
  assert(reservation_ == &rsp);
  reservation_ = nullptr;
  if (ep_.state() == EpState::kReserved) ep_.enter(EpState::kUnconnected);
  assert_consistent();
}

void Connection::await_acceptance(Cr& request, bool made_for_it) {
  assert(!request_);
  request_ = &request;
  remember_peer(request.remote_address(), request.remote_port());
  local_port_ = request.local_port();
  ep_.enter(made_for_it ? EpState::kTentativeConnectionPending : EpState::kPassiveConnectionPending);
  assert_consistent();
}

void Connection::forget_request() {
  if (!std::exchange(request_, nullptr)) return;
  forget_peer();
  ep_.enter(EpState::kUnconnected);
  assert_consistent();
}

Result<> Connection::check_can_accept(const Cr& request, size_t private_data_size) const {
  if (request.is_datagrams() != ep_.is_datagrams()) return fail(Type::kInvalidHandle, Subtype::kHandleEp);
  if (request_ != &request && !ep_.takes_peers()) return tl::unexpected(ep_.state_error());
  if (auto ready = ep_.check_configured(); !ready) return ready;
  const size_t most = ep_.is_datagrams() ? UdMessage::kMaxReplyData : kMaxAcceptData;
  if (private_data_size > most) return refuse_above(Subtype::kPrivateData, most);
  return {};
}

void Connection::accept(verbs::CmId id, uint8_t responder_resources, uint8_t initiator_depth,
                        std::span<const uint8_t> private_data) {
  forget_request();
  assert(id && !id_ && private_data.size() <= kMaxAcceptData);
  id_ = std::move(id);
  id_->context = static_cast<Object*>(&ep_);
  remember_peer(rdma_get_peer_addr(id_.get()), ntohs(rdma_get_dst_port(id_.get())));
  local_port_ = ntohs(rdma_get_src_port(id_.get()));

  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources =
      static_cast<uint8_t>(std::min<uint32_t>(responder_resources, ep_.attr().max_rdma_read_in));
  param.initiator_depth = static_cast<uint8_t>(std::min<uint32_t>(initiator_depth, ep_.attr().max_rdma_read_out));
  param.flow_control = 1;
  param.rnr_retry_count = ep_.ia().settings().rnr_retry_count;
  param.qp_num = ep_.qp_num();

  ep_.enter(EpState::kCompletionPending);
  const bool accepted = set_qp_attributes(IBV_QPS_INIT, nullptr) && set_qp_attributes(IBV_QPS_RTR, &param) &&
                        set_qp_attributes(IBV_QPS_RTS, &param) && rdma_accept(id_.get(), &param) == 0;
  if (!accepted) return fail_accept();
  ep_.ia().counters().add(IaCounter::kRepTx);
}

void Connection::fail_accept() {
  forget_request();
  id_.reset();  // the peer, which still waits, sees a rejection
  end(EventKind::kAcceptCompletionError);
}

Result<> Connection::disconnect(bool abrupt) {
  switch (ep_.state()) {
    case EpState::kDisconnected:
      return {};
    case EpState::kActiveConnectionPending:
    case EpState::kCompletionPending:
      id_.reset();
      end(EventKind::kDisconnected);
      return {};
    case EpState::kDisconnectPending:
      if (!abrupt) return {};
      break;
    case EpState::kConnected:
      break;
    default:
      return tl::unexpected(ep_.state_error());
  }
  if (abrupt) {
    ep_.fail_qp();
    tell_peer();
    end(EventKind::kDisconnected);
    return {};
  }
  // Graceful: posted requests complete first. Nothing more can be posted from here on.
  ep_.enter(EpState::kDisconnectPending);
  ep_.begin_drain();
  drain();
  return {};
}

void Connection::drain() {
  if (ep_.drain()) return start_disconnect();
  client_.set_deadline(now_ns() + kDrainPauseNs);
}

void Connection::start_disconnect() {
  assert(ep_.state() == EpState::kDisconnectPending && !ep_.draining());
  if (tell_peer()) {
    client_.set_deadline(now_ns() + kReplyLimitNs);
  } else {
    end(EventKind::kDisconnected);  // the peer will not reply
  }
}

bool Connection::tell_peer() {
  ep_.ia().counters().add(IaCounter::kDreqTx);
  assert(id_);
  if (rdma_disconnect(id_.get()) == 0) return true;
  id_.reset();
  return false;
}

void Connection::abandon() {
  if (request_) std::exchange(request_, nullptr)->forget_ep();
  if (reservation_) std::exchange(reservation_, nullptr)->forget_ep();
  client_.leave();
  ep_.enter(EpState::kDisconnected);
  if (id_) rdma_disconnect(id_.get());
  id_.reset();
}

void Connection::reset() {
  assert(!id_ && !request_);
  broken_ = flushed_ = false;
  private_data_.assign({});
  forget_peer();
  ep_.enter(EpState::kUnconnected);
}

void Connection::report(EventKind kind) {
  if (!ep_.evds().connect) return;
  const bool has_data = kind == EventKind::kEstablished || kind == EventKind::kPeerRejected;
  Event event{};
  event.kind = kind;
  event.connection = {&ep_, has_data && private_data_.size() ? private_data_.data() : nullptr,
                      has_data ? static_cast<uint32_t>(private_data_.size()) : 0};
  // uDAPL 2.0 dat_ep_disconnect: on a common EVD, successful completions precede the end of their connection. The queue
  // pair makes no more of them.
  const EpEvds& evds = ep_.evds();
  const bool shared = evds.connect == evds.request || evds.connect == evds.recv;
  if (shared && kind != EventKind::kEstablished) {
    evds.connect->post_after_completions(event);
  } else {
    evds.connect->post(event);
  }
}

void Connection::end(EventKind kind) {
  // A connection ends once.
  assert(ep_.state() != EpState::kDisconnected);
  const bool was_up = ep_.is_up();
  client_.set_deadline(kNever);
  ep_.shut_down();
  report(kind);
  // Reports an EP that takes no more receives from a shared queue. InfiniBand has an event for that: the last work
  // request was reached. We make the report here because not every device has that event.
  if (ep_.srq() && was_up) ep_.ia().report_async(EventKind::kAsyncEpBroken, ep_, 0);
}

void Connection::establish(std::span<const uint8_t> private_data) {
  assert(id_);
  client_.set_deadline(kNever);
  private_data_.assign(private_data);
  ep_.enter(EpState::kConnected);
  assert_consistent();
  report(EventKind::kEstablished);
  // A request may have failed before the connection manager's last message arrived.
  if (broken_.load(std::memory_order_acquire) || flushed_.load(std::memory_order_acquire)) notify();
}

// The peer accepted: move the queue pair to RTS, then tell the peer that we are ready.
void Connection::answer_response(const verbs::CmEvent& event) {
  // INIT is repeated, because before the response the connection manager did not know the agreed remote access rights.
  const bool up = set_qp_attributes(IBV_QPS_INIT, nullptr) && set_qp_attributes(IBV_QPS_RTR, nullptr) &&
                  set_qp_attributes(IBV_QPS_RTS, nullptr) && rdma_establish(id_.get()) == 0;
  ep_.ia().counters().add(IaCounter::kRepRx);
  if (up) {
    ep_.ia().counters().add(IaCounter::kRtuTx);
    ep_.ia().counters().add(IaCounter::kActiveEst);
    establish(event.private_data);
  } else {
    const int failure = errno;
    id_.reset();  // tells the peer
    fail_connect(EventKind::kUnreachable, "setting up the queue pair", -failure);
  }
}

void Connection::answer_rejection(const verbs::CmEvent& event) {
  // iWARP has no reason code: there only a consumer's reject carries data. On InfiniBand the peer's kernel also rejects
  // a request that its consumer has dropped. That rejection has the consumer's reason code too, but no header.
  const std::span<const uint8_t> data = event.private_data;
  const bool marked = data.size() >= kRejectHeaderSize && std::any_of(data.begin(), data.begin() + kRejectHeaderSize,
                                                                      [](uint8_t byte) { return byte != 0; });
  if (!marked || (ep_.ia().rules().rejects_with_reason && event.status != kRejectedByConsumer)) {
    ep_.ia().counters().add(IaCounter::kErrRejRx);
    return fail_connect(EventKind::kNonPeerRejected, rdma_event_str(event.type), event.status);
  }
  ep_.ia().counters().add(IaCounter::kUserRejRx);
  private_data_.assign(data.subspan(kRejectHeaderSize));
  fail_connect(EventKind::kPeerRejected, rdma_event_str(event.type), event.status);
}

// status: the connection manager's, or an errno below 0.
void Connection::fail_connect(EventKind kind, const char* what, int status) {
  log_failed_connect(ep_.ia(), remote_.get(), remote_port_, what, status);
  end(kind);
}

void Connection::on_connection_event(const verbs::CmEvent& event) {
  switch (ep_.state()) {
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
      ep_.ia().counters().add(event.type == RDMA_CM_EVENT_REJECTED ? IaCounter::kErrRejRx : IaCounter::kDreqRx);
      // A peer that has refused a request disconnects. Its message may arrive before the consumer has seen the refusal.
      const bool broken = ep_.state() == EpState::kConnected && qp_has_failed();
      rdma_disconnect(id_.get());  // the reply
      end(broken ? EventKind::kBroken : EventKind::kDisconnected);
      break;
    }
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      end(EventKind::kBroken);
      break;
    default:
      break;
  }
}

void Connection::on_active_event(const verbs::CmEvent& event) {
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
      ep_.ia().counters().add(IaCounter::kRepRx);
      ep_.ia().counters().add(IaCounter::kActiveEst);
      establish(event.private_data);
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

void Connection::on_passive_event(const verbs::CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ESTABLISHED:
      ep_.ia().counters().add(IaCounter::kRtuRx);
      ep_.ia().counters().add(IaCounter::kPassiveEst);
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

void Connection::on_device_event(ibv_event_type type) {
  if (type == IBV_EVENT_COMM_EST) {
    // The first request overtook the connection manager's last message, which may be lost; this event replaces it.
    if (id_) rdma_notify(id_.get(), IBV_EVENT_COMM_EST);
    return;
  }
  ep_.ia().report_async(EventKind::kAsyncEpBroken, ep_, type);
  const bool refused = type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_REQ_ERR;
  if (ep_.is_up()) return refused ? break_off_after_refusal() : break_off();
  // establish() breaks the connection off.
  if (ep_.state() == EpState::kCompletionPending) broken_.store(true, std::memory_order_release);
}

bool Connection::qp_has_failed() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  return ep_.ia().rules().error_state_is_a_failure && ibv_query_qp(ep_.qp(), &attr, IBV_QP_STATE, &init) == 0 &&
         attr.qp_state == IBV_QPS_ERR;
}

void Connection::break_off() {
  if (id_) tell_peer();
  end(EventKind::kBroken);
}

// The device tells the peer which of its requests was refused; our disconnect must not overtake that. An established
// connection has no other deadline.
void Connection::break_off_after_refusal() {
  if (ep_.state() != EpState::kConnected || !ep_.ia().rules().tells_peer_of_refusals) return break_off();
  if (!client_.has_deadline()) client_.set_deadline(now_ns() + kRefusalNs);
}

// The device may have flushed the request after a refusal, of which its event is still on the way.
void Connection::report_flush() {
  flushed_.store(true, std::memory_order_release);
  notify();
}

void Connection::report_failure() {
  broken_.store(true, std::memory_order_release);
  notify();
}

void Connection::on_attention() {
  if (ep_.is_up() && broken_.exchange(false)) return break_off();
  if (ep_.is_up() && flushed_.exchange(false)) return break_off_after_refusal();
  if (ep_.draining() && ep_.drain()) start_disconnect();
}

void Connection::on_deadline() {
  switch (ep_.state()) {
    case EpState::kActiveConnectionPending:
      ep_.ia().counters().add(IaCounter::kErrTimeout);
      id_.reset();
      fail_connect(EventKind::kTimedOut, "the consumer's time-out", -ETIMEDOUT);
      break;
    case EpState::kDisconnectPending:
      if (ep_.draining()) {
        drain();
      } else {
        end(EventKind::kDisconnected);
      }
      break;
    case EpState::kConnected:
      break_off();
      break;
    default:
      client_.set_deadline(kNever);
      break;
  }
}

}  // namespace dapple::udapl
