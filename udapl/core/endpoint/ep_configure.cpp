// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts of an endpoint before it is connected: its PZ, EVDs and limits.
#include <initializer_list>
#include <mutex>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/ep_limits.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

bool is_before_connection(EpState state) {
  return state == EpState::kUnconnected || state == EpState::kReserved || state == EpState::kPassiveConnectionPending ||
         state == EpState::kTentativeConnectionPending;
}

// True if a queue pair that was created for a and x also serves b and y.
bool same_queues(const EpEvds& a, const EpAttr& x, const EpEvds& b, const EpAttr& y) {
  return a.recv == b.recv && a.request == b.request && x.max_recv_dtos == y.max_recv_dtos &&
         x.max_request_dtos == y.max_request_dtos && x.max_recv_iov == y.max_recv_iov &&
         max_request_segments(x) == max_request_segments(y);
}

}  // namespace

EvdConfig recv_config(const EpAttr& attr) {
  if (attr.recv_completion_flags & kSolicitedWait) return EvdConfig::kSolicited;
  return attr.recv_completion_flags & kEvdThreshold ? EvdConfig::kThreshold : EvdConfig::kNotify;
}

Subtype conflict_with(EvdConfig config) {
  switch (config) {
    case EvdConfig::kSolicited:
      return Subtype::kEvdConfigSolicited;
    case EvdConfig::kThreshold:
      return Subtype::kEvdConfigThreshold;
    case EvdConfig::kNotify:
      break;
  }
  return Subtype::kEvdConfig;
}

EpState Ep::reported_state() const {
  const EpState now = state() == EpState::kDatagrams ? EpState::kConnected : state();
  if (configured_.load(std::memory_order_acquire)) return now;
  switch (now) {
    case EpState::kUnconnected:
      return EpState::kUnconfiguredUnconnected;
    case EpState::kReserved:
      return EpState::kUnconfiguredReserved;
    case EpState::kPassiveConnectionPending:
      return EpState::kUnconfiguredPassive;
    case EpState::kTentativeConnectionPending:
      return EpState::kUnconfiguredTentative;
    default:
      return now;
  }
}

Result<> Ep::check_configured() const {
  if (!pz_) return fail(Type::kInvalidState, Subtype::kEpPz);
  if (!evds_.connect) return fail(Type::kInvalidState, Subtype::kEpEvdConnect);
  return {};
}

Result<> Ep::check_state(EpState wanted) const {
  if (state() != wanted) return tl::unexpected(state_error());
  return {};
}

Result<> Ep::check_can_free() const {
  switch (state()) {
    case EpState::kReserved:
    case EpState::kPassiveConnectionPending:
    case EpState::kTentativeConnectionPending:
      return tl::unexpected(state_error());
    default:
      return {};
  }
}

Result<> Ep::configure(Pz* pz, const EpEvds& evds, const EpAttr& wanted, const Comm& comm) {
  if (!is_before_connection(state())) return tl::unexpected(state_error());
  const EpAttr attr = with_defaults(ia(), wanted);
  if (auto fits = check(ia(), attr); !fits) return fits;
  if (!is_supported(comm, ia().address()->sa_family)) return fail(Type::kCommNotSupported);
  // The requirements of dat_ep_create_with_srq also apply to a later change.
  if (srq_ && !evds.recv) return refuse(Subtype::kEvd, "an EP with an SRQ needs an EVD for receives");
  if (srq_ && pz && &srq_->pz() != pz) return refuse(Subtype::kPz, "the SRQ has another protection zone");
  const EvdConfig config = recv_config(attr);
  if (evds.recv && !evds.recv->can_configure(config, evds.recv == evds_.recv ? 1 : 0)) {
    return fail(Type::kInvalidState, conflict_with(evds.recv->config()));
  }

  const bool new_queues = pz != pz_ || !same_queues(evds, attr, evds_, attr_);
  std::lock_guard guard(post_mutex_);
  if (new_queues) {
    if (!receives_.empty()) return tl::unexpected(state_error());
    WorkRequestRing requests(attr.max_request_dtos, kept_segments(ia(), max_request_segments(attr)));
    WorkRequestRing receives(srq_ ? 0 : attr.max_recv_dtos, kept_segments(ia(), attr.max_recv_iov));
    verbs::Qp fresh;
    uint32_t max_inline = 0;
    if (pz) {
      auto created = create_qp(*this, *pz, evds, attr, max_inline);
      if (!created) return tl::unexpected(created.error());
      fresh = std::move(*created);
    }
    const uint32_t old_num = qp_ ? qp_->qp_num : 0;
    if (srq_ && fresh) srq_->add(fresh->qp_num, *this);
    if (int error = verbs::destroy(qp_)) {
      if (srq_ && fresh) srq_->remove(fresh->qp_num);
      return fail_errno(error);
    }
    if (srq_ && old_num) srq_->remove(old_num);
    qp_ = std::move(fresh);
    give_back_room_to_flush();
    max_inline_ = max_inline;
    requests_.replace(std::move(requests));
    receives_.replace(std::move(receives));
  }
  if (evds.recv != evds_.recv || config != recv_config(attr_)) {
    if (evds_.recv) evds_.recv->unconfigure();
    if (evds.recv) evds.recv->configure(config);
  }
  if (evds.request != evds_.request) {
    if (evds_.request) evds_.request->drop_requester();
    if (evds.request) evds.request->add_requester();
  }
  // The new references are taken first: an object that stays in use must not seem unused in between.
  if (pz) pz->acquire();
  for (Evd* evd : {evds.recv, evds.request, evds.connect}) {
    if (evd) evd->acquire();
  }
  if (pz_) pz_->release();
  // The reports that wait there are still for the consumer.
  if (evds_.connect && evds_.connect != evds.connect) {
    evds_.connect->forget_completions(*this);
    has_left_evds_ = true;
  }
  for (Evd* evd : {evds_.recv, evds_.request, evds_.connect}) {
    if (evd) evd->release();
  }
  pz_ = pz;
  source_ = {};
  evds_ = evds;
  choose_paths();
  attr_ = attr;
  comm_ = comm;
  configured_.store(pz_ && evds_.connect, std::memory_order_release);
  return {};
}

}  // namespace dapple::udapl
