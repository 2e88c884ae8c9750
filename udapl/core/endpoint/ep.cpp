// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/endpoint/ep.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "udapl/core/endpoint/ep_limits.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {

EpAttr with_defaults(const Ia& ia, EpAttr attr) {
  const uint32_t largest = ia.port_attr().max_msg_sz;
  const uint32_t read_iov = std::min(attr.max_request_iov, ia.max_read_segments());
  if (attr.datagrams) {
    // A datagram is one packet, and there is no RDMA.
    if (attr.max_message_size == 0 || attr.max_message_size > ia.mtu()) attr.max_message_size = ia.mtu();
    attr.max_rdma_size = attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
    attr.max_rdma_read_iov = read_iov;
    attr.max_rdma_write_iov = attr.max_request_iov;
    return attr;
  }
  if (attr.max_message_size == 0) attr.max_message_size = largest;
  if (attr.max_rdma_size == 0) attr.max_rdma_size = largest;
  // Older consumers know one limit for all requests and leave these at 0.
  attr.max_rdma_read_iov = std::max(attr.max_rdma_read_iov, read_iov);
  attr.max_rdma_write_iov = std::max(attr.max_rdma_write_iov, attr.max_request_iov);
  // RFC 5040: the answer to a read has one destination segment. A program that was written for InfiniBand may ask for
  // more.
  if (ia.rules().reads_into_one_segment) attr.max_rdma_read_iov = read_iov;
  return attr;
}

Result<> check(const Ia& ia, const EpAttr& attr) {
  const ibv_device_attr& device = ia.device();
  const uint64_t largest = ia.port_attr().max_msg_sz;
  const uint64_t max_wr = ia.max_dtos();
  const auto max_sge = static_cast<uint64_t>(device.max_sge);
  const struct {
    const char* what;
    uint64_t value;
    uint64_t limit;
  } limits[] = {
      {"an EP's max_message_size", attr.max_message_size, largest},
      {"an EP's max_rdma_size", attr.max_rdma_size, largest},
      {"an EP's max_recv_dtos", attr.max_recv_dtos, max_wr},
      {"an EP's max_request_dtos", attr.max_request_dtos, max_wr},
      {"an EP's max_recv_iov", attr.max_recv_iov, max_sge},
      {"an EP's max_request_iov", attr.max_request_iov, max_sge},
      {"an EP's max_rdma_read_iov", attr.max_rdma_read_iov, ia.max_read_segments()},
      {"an EP's max_rdma_write_iov", attr.max_rdma_write_iov, max_sge},
      {"an EP's max_rdma_read_in", attr.max_rdma_read_in, static_cast<uint64_t>(device.max_qp_rd_atom)},
      {"an EP's max_rdma_read_out", attr.max_rdma_read_out, static_cast<uint64_t>(device.max_qp_init_rd_atom)},
  };
  for (const auto& [what, value, limit] : limits) {
    if (!within(ia, what, value, limit)) return fail(Type::kInvalidParameter, Subtype::kAttr);
  }
  const uint32_t flags = attr.recv_completion_flags | attr.request_completion_flags;
  if (flags & ~uint32_t{kAllCompletionFlags}) {
    log_refused(ia, "an EP's completion_flags", flags, "unknown flags");
    return fail(Type::kInvalidParameter, Subtype::kAttr);
  }
  return {};
}

Ep::Ep(Ia& ia, Pz* pz, const EpEvds& evds, const EpAttr& attr, Srq* srq)
    : Object(ia.tables().live, kKind, &ia),
      pz_(pz),
      srq_(srq),
      evds_(evds),
      comm_{.domain = ia.address()->sa_family},
      configured_(pz && evds.connect),
      attr_(attr),
      post_mutex_(ia.thread_safe()),
      needs_slow_path_(ia.thread_safe() || ia.maintains_caches() || !ia.rules().flushes_late_requests),
      requests_(attr.max_request_dtos, kept_segments(ia, max_request_segments(attr))),
      receives_(srq ? 0 : attr.max_recv_dtos, kept_segments(ia, attr.max_recv_iov)),
      connection_(*this),
      datagrams_(attr.datagrams ? std::make_unique<Datagrams>(*this) : nullptr) {
  choose_paths();
}

Result<Ep*> Ep::create(Ia& ia, Pz* pz, const EpEvds& evds, const EpAttr& wanted, Srq* srq) {
  if (wanted.datagrams && !ia.rules().has_datagrams) return fail(Type::kModelNotSupported);
  const EpAttr attr = with_defaults(ia, wanted);
  if (auto fits = check(ia, attr); !fits) return tl::unexpected(fits.error());
  // DEVIATION dat_ep_create_with_srq: the EP and its SRQ have one protection zone, as the provider's attributes
  // declare.
  if (srq && pz && &srq->pz() != pz) return refuse(Subtype::kPz, "the SRQ has another protection zone");
  const EvdConfig config = recv_config(attr);
  if (evds.recv && !evds.recv->can_configure(config, 0)) {
    return fail(Type::kInvalidState, conflict_with(evds.recv->config()));
  }
  Ep* ep = arena<Ep>().create(ia, pz, evds, attr, srq);
  if (pz) {
    auto qp = create_qp(*ep, *pz, evds, attr, ep->max_inline_);
    if (!qp) {
      arena<Ep>().destroy(ep, ia.tables().dead);
      return tl::unexpected(qp.error());
    }
    ep->qp_ = std::move(*qp);
  }
  const uint32_t qp_num = ep->qp_num();
  try {
    if (srq && pz) srq->add(qp_num, *ep);
  } catch (...) {
    arena<Ep>().destroy(ep, ia.tables().dead);
    throw;
  }
  ia.adopt(*ep);
  if (evds.recv) evds.recv->configure(config);
  if (evds.request) evds.request->add_requester();
  if (pz) pz->acquire();
  if (srq) srq->acquire();
  for (Evd* evd : {evds.recv, evds.request, evds.connect}) {
    if (evd) evd->acquire();
  }
  if (attr.datagrams) ia.serve_datagrams();
  return ep;
}

Result<verbs::Qp> Ep::create_qp(Ep& ep, Pz& pz, const EpEvds& evds, const EpAttr& attr, uint32_t& max_inline) {
  Ia& ia = ep.ia();
  ibv_cq* recv_cq = evds.recv ? evds.recv->cq() : nullptr;
  ibv_cq* send_cq = evds.request ? evds.request->cq() : nullptr;
  if (!recv_cq || !send_cq) {
    auto idle = ia.idle_cq();
    if (!idle) return tl::unexpected(idle.error());
    if (!recv_cq) recv_cq = *idle;
    if (!send_cq) send_cq = *idle;
  }
  ibv_qp_init_attr init{};
  init.qp_context = static_cast<Object*>(&ep);
  init.qp_type = attr.datagrams ? IBV_QPT_UD : IBV_QPT_RC;
  init.send_cq = send_cq;
  init.recv_cq = recv_cq;
  init.srq = ep.srq_ ? ep.srq_->verbs_srq() : nullptr;
  init.cap.max_send_wr = std::max(1U, attr.max_request_dtos);
  init.cap.max_recv_wr = std::max(1U, attr.max_recv_dtos);
  init.cap.max_send_sge = std::max(1U, max_request_segments(attr));
  init.cap.max_recv_sge = std::max(1U, attr.max_recv_iov);
  init.cap.max_inline_data = ia.settings().max_inline_bytes;
  errno = ENOSPC;  // as in Evd::open_queues()
  verbs::Qp qp(ibv_create_qp(pz.pd(), &init));
  if (!qp && errno == EINVAL && init.cap.max_inline_data) {
    init.cap.max_inline_data = 0;  // not every device has inline data
    qp.reset(ibv_create_qp(pz.pd(), &init));
  }
  if (!qp) return ia.refused_queue(errno);
  // Devices may grant more than was asked for.
  max_inline = std::min(init.cap.max_inline_data, ia.settings().max_inline_bytes);

  // Receives may be posted before there is a connection.
  if (!ia.rules().receives_need_init) return qp;
  if (attr.datagrams) {
    if (int error = Datagrams::bring_up(qp.get(), ia)) return fail_errno(error);
    return qp;
  }
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = ia.port();
  state.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (ia.has_atomics()) state.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
  const int error =
      ibv_modify_qp(qp.get(), &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error) return fail_errno(error);
  return qp;
}

void Ep::fail_qp() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  // The transition is tried again, because nothing else flushes posted requests. If it fails twice, nothing more can be
  // done.
  if (ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE)) ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
}

// Fails without memory. Callers need this before they destroy the queue pair, because dropping its completions must not
// fail then.
Result<> Ep::empty_cqs() {
  for (Evd* evd : {evds_.recv, evds_.request}) {
    if (!evd) continue;
    if (auto emptied = evd->empty_cq(); !emptied) return emptied;
  }
  return {};
}

void Ep::forget_datagrams() {
  if (has_left_evds_) {
    ia().forget_datagrams(*this);
  } else if (evds_.connect) {
    evds_.connect->forget_datagrams(*this);
  }
}

void Ep::abandon() {
  draining_ = false;
  connection_.abandon();
  if (datagrams_) datagrams_->abandon();
}

Result<> Ep::free(Ep& ep) {
  assert(!ep.draining() || ep.state() == EpState::kDisconnectPending);
  if (auto emptied = ep.empty_cqs(); !emptied) return emptied;
  Ia& ia = ep.ia();
  ep.abandon();
  const uint32_t qp_num = ep.qp_num();
  if (ep.qp_) ep.fail_qp();
  // Some providers drop the completions of a queue pair that is destroyed, and the shared queue would miss their
  // places.
  if (ep.srq_) (void)ep.empty_cqs();
  {
    // A bind on another endpoint that fails gives the window back to this one.
    const auto binding = ia.windows().binding();
    if (int error = ia.windows().forget(ep)) return fail_errno(error);
    if (int error = verbs::destroy(ep.qp_)) return fail_errno(error);
  }
  for (Evd* evd : {ep.evds_.recv, ep.evds_.request, ep.evds_.connect}) {
    if (evd) evd->forget(ep);
  }
  if (ep.has_left_evds_) ia.forget_reports(ep);
  assert(!ep.windows_);
  ep.give_back_spares();
  ep.give_back_room_to_flush();
  if (ep.datagrams_) ep.datagrams_->clear(qp_num);
  if (ep.srq_) {
    if (qp_num) ep.srq_->remove(qp_num);
    ep.srq_->release();
  }
  if (ep.evds_.recv) ep.evds_.recv->unconfigure();
  if (ep.evds_.request) ep.evds_.request->drop_requester();
  for (Evd* evd : {ep.evds_.recv, ep.evds_.request, ep.evds_.connect}) {
    if (evd) evd->release();
  }
  if (ep.pz_) ep.pz_->release();
  ia.destroy(ep);
  return {};
}

Result<> Ep::reset() {
  if (state() == EpState::kUnconnected) return {};
  if (state() != EpState::kDisconnected) return tl::unexpected(state_error());
  if (auto emptied = empty_cqs(); !emptied) return emptied;
  connection_.drop_id();
  // We make a new queue pair instead of moving the old one through RESET: the new number keeps the peer's connection
  // manager from taking the next connection for a stale one, and iWARP queue pairs cannot be reset at all.
  uint32_t max_inline = 0;
  auto fresh = create_qp(*this, *pz_, evds_, attr_, max_inline);
  if (!fresh) return tl::unexpected(fresh.error());
  // Other threads may bind windows and post meanwhile.
  const auto binding = ia().windows().binding();
  std::lock_guard guard(post_mutex_);
  const uint32_t old_num = qp_->qp_num;
  if (srq_) srq_->add((*fresh)->qp_num, *this);
  int error = ia().windows().forget(*this);
  if (!error) error = verbs::destroy(qp_);
  if (error) {
    if (srq_) srq_->remove((*fresh)->qp_num);
    return fail_errno(error);
  }
  qp_ = std::move(*fresh);
  max_inline_ = max_inline;
  if (datagrams_) {
    datagrams_->clear(old_num);  // and the events that point to its connections
  }
  for (Evd* evd : {evds_.recv, evds_.request}) {
    if (evd) evd->forget_completions(*this);
  }
  give_back_spares();
  for (FlushLink* link : flush_links()) link->flushed = false;
  device_has_flushed_ = false;
  if (srq_) srq_->remove(old_num);
  requests_.clear();
  receives_.clear();
  unsignalled_run_ = 0;
  connection_.reset();
  assert(requests_.empty() && receives_.empty() && !draining());
  return {};
}

bool Ep::takes_peers() const {
  const EpState now = state();
  return now == EpState::kUnconnected ||
         (datagrams_ && (now == EpState::kDatagrams || now == EpState::kActiveConnectionPending ||
                         now == EpState::kCompletionPending));
}

Result<> Ep::connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                     std::span<const uint8_t> private_data) {
  if (!takes_peers()) return tl::unexpected(state_error());
  if (auto ready = check_configured(); !ready) return ready;
  if (private_data.size() > Connection::kMaxConnectData)
    return refuse_above(Subtype::kPrivateData, Connection::kMaxConnectData);
  if (remote->sa_family != ia().address()->sa_family) return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  auto begun = datagrams_ ? datagrams_->connect(remote, conn_qual, timeout_us, private_data)
                          : connection_.connect(remote, conn_qual, timeout_us, private_data);
  if (begun) counters_.add(EpCounter::kConnect);
  return begun;
}

Result<> Ep::disconnect(bool abrupt) {
  counters_.add(EpCounter::kDisconnect);
  return datagrams_ ? Result<>() : connection_.disconnect(abrupt);
}

// A queue pair in ERR flushes what is posted, receives included, with the consumer's cookies. The state is set first:
// then either this function finds a receive that is posted meanwhile, or its poster sees the state. The state also lets
// requests be posted, but a queue pair that was never connected refuses them before ERR.
void Ep::shut_down() {
  draining_.store(false, std::memory_order_release);
  if (!is_up()) fail_qp();
  enter(EpState::kDisconnected);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in has_ended_meanwhile()
  fail_qp();
  give_up_device();
}

Error Ep::state_error() const {
  switch (reported_state()) {
#define EP_STATE(NAME, SUBTYPE, DAT) \
  case EpState::NAME:                \
    return {Type::kInvalidState, Subtype::SUBTYPE};
#include "udapl/api/names.def"
    case EpState::kDatagrams:
      break;
  }
  return {Type::kInvalidState, Subtype::kEpConnected};
}

}  // namespace dapple::udapl
