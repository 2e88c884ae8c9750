// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/service.hpp"

#include <new>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/protocol/cm_commands.hpp"

namespace dapple::dappled::rdma_cm {

std::unique_ptr<Service> Service::create(World& world, const Settings& settings) {
  std::unique_ptr<Service> service(new (std::nothrow) Service(world, settings));
  if (service == nullptr) return nullptr;
  service->manager_ = cm::Manager::create({}, *service);
  if (service->manager_ == nullptr || !service->resolving_.create(IdTable::kMax)) return nullptr;
  return service;
}

Service::Handler Service::handler_of(uint32_t command) {
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return &Service::create_id;
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return &Service::destroy_id;
    case RDMA_USER_CM_CMD_BIND_IP:
      return &Service::bind_ip;
    case RDMA_USER_CM_CMD_RESOLVE_IP:
      return &Service::resolve_ip;
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
      return &Service::resolve_route;
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
      return &Service::query_route;
    case RDMA_USER_CM_CMD_CONNECT:
      return &Service::connect;
    case RDMA_USER_CM_CMD_LISTEN:
      return &Service::listen;
    case RDMA_USER_CM_CMD_ACCEPT:
      return &Service::accept;
    case RDMA_USER_CM_CMD_REJECT:
      return &Service::reject;
    case RDMA_USER_CM_CMD_DISCONNECT:
      return &Service::disconnect;
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return &Service::init_qp_attr;
    case RDMA_USER_CM_CMD_GET_EVENT:
      return &Service::get_event;
    case RDMA_USER_CM_CMD_SET_OPTION:
      return &Service::set_option;
    case RDMA_USER_CM_CMD_NOTIFY:
      return &Service::notify;
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return &Service::join_ip_mcast;
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return &Service::leave_mcast;
    case RDMA_USER_CM_CMD_MIGRATE_ID:
      return &Service::migrate_id;
    case soft::kCmResolveIbService:
      return &Service::resolve_ib_service;
    case soft::kCmWriteEvent:
      return &Service::write_cm_event;
    default:
      // Without RDMA_USER_CM_CMD_BIND librdmacm does not use AF_IB, and sends only the commands above.
      return nullptr;
  }
}

int Service::command(Time now, Channel& channel, Channel* source, std::span<const uint8_t> bytes, Answer& answer,
                     uint32_t token) {
  rdma_ucm_cmd_hdr header;
  reason_[0] = '\0';
  answer.reason = reason_;
  if (bytes.size() < sizeof header) return refuse_malformed();
  memcpy(&header, bytes.data(), sizeof header);
  if (header.cmd > soft::kCmWriteEvent || header.in > bytes.size() - sizeof header) return refuse_malformed();
  const Handler handler = handler_of(header.cmd);
  if (handler == nullptr) {
    return refuse(ENOSYS, "this device has no InfiniBand, and no address family AF_IB.\nTake AF_INET or AF_INET6.");
  }
  const auto in = bytes.subspan(sizeof header);
  const size_t room = std::min<size_t>(header.out, answer.response.size());
  Call call{now, channel, source, in.first(header.in), in.subspan(header.in), room, answer, token};
  const int error = (this->*handler)(call);
  // A command with an answer must be carried out again, because nobody keeps its answer. DESTROY_ID leaves no id that
  // could keep the token.
  if (error == 0 && call.changed != nullptr && answer.length == 0) call.changed->last_token = token;
  write_journals();
  rdma_cm::assert_consistent(channel);
  if (source != nullptr) rdma_cm::assert_consistent(*source);
  assert_consistent();
  assert(answer.length <= room && (error == 0 || answer.length == 0));
  return error == kDoneBefore ? 0 : error;
}

int Service::look_up(const Channel& channel, uint32_t number, CmId*& id) const {
  id = ids_.find(channel, number);
  // As in the kernel: a connection request has no number before its event is read.
  if (id != nullptr) return id->unheard ? ENOENT : 0;  // no refusal: refuse_number()
  return ids_.has(number) ? EINVAL : ENOENT;           // no refusal: refuse_number()
}

int Service::find(Call& call, uint32_t number, CmId*& id) {
  if (const int error = look_up(call.channel, number, id); error != 0) return refuse_number(error, number);
  if (may_be_repeated(call) && id->last_token == call.token) return kDoneBefore;
  note(*id);
  call.changed = id;
  return 0;
}

int Service::find_with_device(Call& call, uint32_t number, CmId*& id) {
  if (const int error = find(call, number, id); error != 0) return error;
  return id->device != 0 ? 0 : refuse_without_device(*id);
}

void Service::receive(Time now, const cm::Path& path, std::span<const std::byte> mad) {
  manager_->receive(now, path, mad);
  settle(now);
  write_journals();
  assert_consistent();
}

void Service::assert_consistent() const {
  assert(!afterwards_);
  assert(changed_ == nullptr);
  assert(resolving_.size() <= ids_.size());
  assert(membership_count_ <= kMaxMemberships && (membership_count_ == 0 || ids_.size() > 0));
  assert(manager_->listeners() <= ids_.size());
}

void Service::refresh_devices() {
  // As in the kernel, the id is of no use any more, and its program must destroy it.
  ids_.visit([this](CmId& id) {
    if (id.device == 0 || id.state == State::kRemoved || world_.devices().find(id.device) != nullptr) return;
    resolving_.cancel(id);
    enter(id, State::kRemoved);
    note(id);
    add_event(id, EventKind::kDeviceRemoval);
  });
  write_journals();
  assert_consistent();
}

}  // namespace dapple::dappled::rdma_cm
