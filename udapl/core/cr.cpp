// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/cr.hpp"

#include <arpa/inet.h>

#include <cstring>

#include "udapl/core/ep.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/psp.hpp"

namespace dapple::dat {
namespace {

// A consumer's reject starts with this word, so that the peer can tell it from one the connection manager made up:
// DAT version 2.0, provider version 1.0.
constexpr uint32_t kRejectHeader = 2U << 24 | 0U << 16 | 1U << 8 | 0U;

}  // namespace

Cr::Cr(Ia& ia, verbs::CmId id, const verbs::CmEvent& event)
    : Object(ia.tables().live, kKind, &ia),
      id_(std::move(id)),
      responder_resources_(event.responder_resources),
      initiator_depth_(event.initiator_depth),
      private_data_size_(event.private_data_size),
      private_data_(event.private_data) {
  id_->context = static_cast<Object*>(this);
}

Cr* Cr::create(Psp& psp, verbs::CmId id, const verbs::CmEvent& event) {
  Cr* cr = arena<Cr>().create(psp.ia(), std::move(id), event);
  psp.ia().adopt(*cr);
  return cr;
}

Result<> Cr::free(Cr& cr) {
  Ia& ia = cr.ia();
  ia.disown(cr);
  arena<Cr>().destroy(&cr, ia.tables().dead);
  return {};
}

uint64_t Cr::remote_port() const {
  return ntohs(rdma_get_dst_port(id_.get()));
}

Result<> Cr::accept(Ep& ep, std::span<const uint8_t> private_data) {
  if (auto ready = ep.check_can_accept(private_data.size()); !ready) return ready;
  if (peer_gone_) {
    // uDAPL 2.0 6.4.3.2: the request was withdrawn meanwhile; the connection EVD tells.
    ep.fail_accept();
    return free(*this);
  }
  ep.accept(std::move(id_), responder_resources_, initiator_depth_, private_data);
  return free(*this);
}

Result<> Cr::reject(std::span<const uint8_t> private_data) {
  if (private_data.size() > kMaxRejectData) return fail(Type::kInvalidParameter, Subtype::kArg2);
  std::array<uint8_t, sizeof kRejectHeader + kMaxRejectData> message;
  const uint32_t header = htonl(kRejectHeader);
  std::memcpy(message.data(), &header, sizeof header);
  if (!private_data.empty()) std::memcpy(message.data() + sizeof header, private_data.data(), private_data.size());
  const int result = rdma_reject(id_.get(), message.data(), static_cast<uint8_t>(sizeof header + private_data.size()));
  if (result && !peer_gone_) return fail_errno(errno);
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

}  // namespace dapple::dat
