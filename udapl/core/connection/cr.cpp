// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/cr.hpp"

#include <arpa/inet.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {
namespace {

// The private data of a consumer's reject starts with this word (DAT version 2.0, provider version 1.0), so that the
// peer can distinguish it from a reject that the connection manager has made.
constexpr uint32_t kRejectHeader = 2U << 24 | 0U << 16 | 1U << 8 | 0U;

}  // namespace

Cr::Cr(Ia& ia, const rdma_cm_id& id, const verbs::CmEvent& event)
    : Object(ia.tables().live, kKind, &ia), datagrams_(id.ps == RDMA_PS_UDP), offer_(event) {}

Cr* Cr::create(Ia& ia, verbs::CmId& id, const verbs::CmEvent& event) {
  Cr* cr = arena<Cr>().create(ia, *id, event);
  ia.adopt(*cr);
  cr->id_ = std::move(id);
  cr->id_->context = static_cast<Object*>(cr);
  return cr;
}

Result<> Cr::free(Cr& cr) {
  cr.give_back_ep();
  cr.ia().destroy(cr);
  return {};
}

uint64_t Cr::remote_port() const {
  return ntohs(rdma_get_dst_port(id_.get()));
}

uint64_t Cr::local_port() const {
  return ntohs(rdma_get_src_port(id_.get()));
}

void Cr::hold(Ep& ep, bool made_for_it) {
  assert(!ep_);
  ep_ = &ep;
  ep_made_for_it_ = made_for_it;
  ep.connection().await_acceptance(*this, made_for_it);
}

void Cr::give_back_ep() {
  Ep* ep = std::exchange(ep_, nullptr);
  if (!ep) return;
  ep->connection().forget_request();
  if (ep_made_for_it_) (void)Ep::free(*ep);
}

Result<> Cr::accept(Ep* given, std::span<const uint8_t> private_data) {
  // A request that came with its own EP takes no other.
  if (ep_ ? given && given != ep_ : !given) return fail(Type::kInvalidHandle, Subtype::kHandleEp);
  Ep& ep = ep_ ? *ep_ : *given;
  if (auto ready = ep.connection().check_can_accept(*this, private_data.size()); !ready) return ready;
  if (peer_gone_) {
    // uDAPL 2.0 6.4.3.2: the request was withdrawn meanwhile; an event on the connection EVD reports it.
    ep.connection().fail_accept();
  } else if (datagrams_) {
    ep.datagrams()->accept(id_, UdReceived(offer_.private_data), private_data);
  } else {
    ep.connection().accept(std::move(id_), offer_.responder_resources, offer_.initiator_depth, private_data);
  }
  ep_ = nullptr;  // it has left the request
  if (!peer_gone_) ia().counters().add(IaCounter::kRequestAccepted);
  return free(*this);
}

Result<> Cr::reject(std::span<const uint8_t> private_data) {
  const size_t most = datagrams_ ? UdMessage::kMaxReplyData : kMaxRejectData;
  if (private_data.size() > most) return refuse_above(Subtype::kPrivateData, most);
  const int result = datagrams_ ? reject_datagrams(private_data) : reject_connection(private_data);
  // Any other failure means that the request was withdrawn; its event may be on the way. No peer is left to inform.
  if (result && is_shortage(errno)) return fail_errno(errno);
  ia().counters().add(IaCounter::kRequestRejected);
  ia().counters().add(IaCounter::kUserRejTx);
  return free(*this);
}

int Cr::reject_datagrams(std::span<const uint8_t> private_data) {
  const UdMessage message(0, 0, private_data);
  return rdma_reject(id_.get(), message.data(), message.size());
}

int Cr::reject_connection(std::span<const uint8_t> private_data) {
  std::array<uint8_t, sizeof kRejectHeader + kMaxRejectData> message;
  const uint32_t header = htonl(kRejectHeader);
  std::memcpy(message.data(), &header, sizeof header);
  if (!private_data.empty()) std::memcpy(message.data() + sizeof header, private_data.data(), private_data.size());
  return rdma_reject(id_.get(), message.data(), static_cast<uint8_t>(sizeof header + private_data.size()));
}

Result<> Cr::hand_off(uint64_t conn_qual) {
  ServicePoint* target = nullptr;
  arena<Ia>().for_each([&](Ia& other) {
    if (!target && verbs::same_address(other.address(), ia().address())) target = other.find_service_point(conn_qual);
  });
  if (!target) return refuse(Subtype::kConnQual, "no service point of this process has it");
  if (auto taken = target->take(id_, offer_); !taken) {
    id_->context = static_cast<Object*>(this);
    return taken;
  }
  return free(*this);
}

void Cr::on_connection_event(const verbs::CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      peer_gone_ = true;
      break;
    default:
      break;
  }
}

}  // namespace dapple::udapl
