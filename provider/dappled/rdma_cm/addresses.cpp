// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// BIND_IP, RESOLVE_IP, RESOLVE_ROUTE.
#include <infiniband/verbs.h>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/constants.hpp"
#include "provider/dappled/rdma_cm/gid_location.hpp"
#include "provider/member/port_mtu.hpp"

namespace dapple::dappled::rdma_cm {

bool Service::attach(CmId& id, const Address& address) const {
  const GidLocation found = find_gid(world_.devices(), world_.rails(*id.channel), address.gid, address.scope);
  if (found.device == nullptr) return false;
  assert(found.index < soft::kMaxGids);
  id.device = found.device->index;
  id.gid_index = found.index;
  return true;
}

int Service::bind(CmId& id, const Address& address) {
  if (id.state != State::kIdle) return EINVAL;
  assert(id.device == 0 && id.has_port == 0);
  if (address.is_link_local() && address.scope == 0) return EINVAL;
  if (address.port != 0 && address.port < kUnprivilegedPort && !settings_.privileged) return EACCES;
  if (!address.is_any() && !attach(id, address)) {
    const int error = world_.check_own(address);
    return error != 0 ? error : ENODEV;
  }
  id.source = address;
  if (!id.one_family_set) id.one_family = address.family == AF_INET;
  if (const int error = ports_.bind(id, world_.random()); error != 0) {
    id.source = {};
    id.device = 0;
    return error;
  }
  id.destination.family = address.family;
  enter(id, State::kBound);
  return 0;
}

int Service::bind_ip(Call& call) {
  rdma_ucm_bind_ip command;
  if (!read(call, command)) return EINVAL;
  Address address;
  if (!read_address(command.addr, address)) return EINVAL;
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  return bind(*id, address);
}

int Service::resolve_ip(Call& call) {
  rdma_ucm_resolve_ip command;
  if (!read(call, command)) return EINVAL;
  Address source, destination;
  const bool with_source = command.src_addr.sin6_family != 0;
  if (with_source && !read_address(command.src_addr, source)) return EINVAL;
  if (!read_address(command.dst_addr, destination)) return EINVAL;
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (call.channel.events.size() >= kMaxUnread) return ENOMEM;
  if (id->state != State::kBound) {
    if (!with_source) {
      source = any_address(destination.family);
      source.scope = destination.scope;
    }
    if (const int error = bind(*id, source); error != 0) return error;
  }
  if (id->source.family != destination.family) return EINVAL;
  id->destination = destination;
  return resolve(call.now, *id, command.timeout_ms);
}

void Service::make_route(CmId& id) const {
  assert(id.state == State::kAddressResolved && id.device != 0);
  const soft::DeviceInfo* device = world_.devices().find(id.device);
  id.route.known = true;
  id.route.source = id.source.gid;
  id.route.destination = id.destination.gid;
  id.route.mtu = static_cast<uint8_t>(soft::roce_mtu(device != nullptr ? device->netdev_mtu - kMoreHeaders : 0));
  id.route.hop_limit = kHopLimit;
  id.route.traffic_class = id.traffic_class;
  id.route.lifetime = id.has_timeout && id.timeout != 0 ? static_cast<uint8_t>(id.timeout - 1) : kLifetime;
}

int Service::resolve_route(Call& call) {
  rdma_ucm_resolve_route command;
  if (!read(call, command)) return EINVAL;
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (id->state != State::kAddressResolved) return EINVAL;
  make_route(*id);
  enter(*id, State::kRouteResolved);
  add_event(*id, EventKind::kRouteResolved);
  return 0;
}

}  // namespace dapple::dappled::rdma_cm
