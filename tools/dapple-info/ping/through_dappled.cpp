// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/through_dappled.hpp"

#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "roce/cm/ip_service.hpp"

namespace dapple::info {
namespace {

constexpr int kStepMs = 1000;
// From librdmacm's enum rdma_cm_event_type.
constexpr int kAddressResolved = 0, kRouteResolved = 2, kUnreachable = 7;

}  // namespace

std::unique_ptr<ThroughDappled> ThroughDappled::open(const Address& local, const Address& peer) {
  std::unique_ptr<ThroughDappled> made(new ThroughDappled);
  soft::Problem problem;
  made->link_ = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
  soft::StatusReply status;
  if (made->link_ == nullptr || !made->link_->status(status, problem) || status.slots == 0) return nullptr;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return nullptr;
  made->channel_.reset(ends[0]);
  made->dappleds_end_.reset(ends[1]);
  if (!made->link_->cm_open(ends[1], made->name_, made->journal_, problem)) return nullptr;
  made->local_ = with_port(local, 0);
  // A service that does not exist, in the port space of UDP.
  made->peer_ = with_port(peer, soft::kRocePort);
  return made;
}

template <class Command>
bool ThroughDappled::command(uint32_t number, const Command& body, void* response, size_t response_size) {
  soft::CmCommandRequest request;
  request.channel = name_;
  const rdma_ucm_cmd_hdr header = {number, sizeof body, static_cast<uint16_t>(response_size)};
  static_assert(sizeof header + sizeof body <= soft::kCmCommandSize);
  std::memcpy(request.command, &header, sizeof header);
  std::memcpy(request.command + sizeof header, &body, sizeof body);
  request.length = sizeof header + sizeof body;
  soft::CmCommandReply reply;
  soft::Problem problem;
  bool again = false;
  if (link_->cm_command(request, reply, again, problem) != 0 || reply.header.error != 0) return false;
  if (response != nullptr) std::memcpy(response, reply.response, std::min<size_t>(response_size, reply.length));
  return true;
}

int ThroughDappled::event(int milliseconds, int& status) {
  pollfd waiting{channel_.get(), POLLIN, 0};
  char byte;
  if (poll(&waiting, 1, milliseconds) <= 0 || recv(channel_.get(), &byte, 1, 0) != 1) return -1;
  rdma_ucm_event_resp response{};
  if (!command(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, &response, sizeof response)) return -1;
  status = static_cast<int>(response.status);
  return static_cast<int>(response.event);
}

bool ThroughDappled::prepare() {
  end();
  rdma_ucm_create_id create{};
  // An id without a context gets no events.
  create.uid = 1;
  create.ps = static_cast<uint16_t>(roce::cm::PortSpace::kUdp);
  create.qp_type = IBV_QPT_UD;
  rdma_ucm_create_id_resp created{};
  if (!command(RDMA_USER_CM_CMD_CREATE_ID, create, &created, sizeof created)) return false;
  id_ = created.id;
  has_id_ = true;
  rdma_ucm_resolve_ip address{};
  address.id = id_;
  address.timeout_ms = kStepMs;
  std::memcpy(&address.src_addr, &local_, size_of_address(local_));
  std::memcpy(&address.dst_addr, &peer_, size_of_address(peer_));
  int status = 0;
  if (!command(RDMA_USER_CM_CMD_RESOLVE_IP, address) || event(kStepMs, status) != kAddressResolved) return false;
  const rdma_ucm_resolve_route route{id_, kStepMs};
  if (!command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, route) || event(kStepMs, status) != kRouteResolved) return false;
  return true;
}

bool ThroughDappled::send() {
  rdma_ucm_connect connect{};
  connect.id = id_;
  connect.conn_param.qp_num = 2;
  connect.conn_param.valid = 1;
  return command(RDMA_USER_CM_CMD_CONNECT, connect);
}

bool ThroughDappled::answered() {
  int status = 0;
  const int kind = event(0, status);
  // dappled's own time-out has passed without an answer; any other event comes from the peer.
  return kind >= 0 && !(kind == kUnreachable && status < 0);
}

void ThroughDappled::end() {
  if (!has_id_) return;
  rdma_ucm_destroy_id destroy{};
  destroy.id = id_;
  rdma_ucm_destroy_id_resp destroyed{};
  command(RDMA_USER_CM_CMD_DESTROY_ID, destroy, &destroyed, sizeof destroyed);
  char byte;
  while (recv(channel_.get(), &byte, 1, 0) == 1) {
  }
  has_id_ = false;
}

uint64_t ThroughDappled::wrong_icrcs() {
  soft::StatusReply status;
  soft::Problem problem;
  uint64_t count = 0;
  if (!link_->status(status, problem)) return 0;
  for (size_t i = 0; i < soft::kCounterCount; i++) {
    const std::string_view key = soft::kCounterNames[i].key;
    if (key == "bad_icrc" || key == "identification") count += status.counters[i];
  }
  return count;
}

}  // namespace dapple::info
