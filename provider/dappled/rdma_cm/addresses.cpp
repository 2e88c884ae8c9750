// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// BIND_IP, RESOLVE_IP, RESOLVE_ROUTE.
#include <infiniband/verbs.h>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/constants.hpp"
#include "provider/dappled/rdma_cm/ids/words.hpp"
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"
#include "provider/network/port_mtu.hpp"
#include "provider/protocol/cm_commands.hpp"

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
  if (id.state != State::kIdle) {
    return refuse(EINVAL, "the id has an address already: it %s.\nCall rdma_bind_addr() once, before all other calls.",
                  words_of(id.state));
  }
  assert(id.device == 0 && id.has_port == 0);
  if (address.is_link_local() && address.scope == 0) {
    return refuse(EINVAL,
                  "a link-local address belongs to a network device, and sin6_scope_id, which names it, is 0.\n"
                  "Set sin6_scope_id by if_nametoindex(), or write the address as fe80::1%%eth0 for getaddrinfo().");
  }
  if (!address.is_any() && !attach(id, address)) {
    if (const int error = world_.check_own(address); error != 0) {
      return refuse(
          error,
          "no network device of this host has the address %s.\nBind to one of the addresses that `ip address` "
          "shows in this network namespace, or to the wildcard address.",
          text_of(address).c_str());
    }
    return refuse(ENODEV,
                  "the address %s belongs to a network device without an RDMA device that this program sees.\n"
                  "Take an address that `ibv_devinfo -v` shows among the GIDs.",
                  text_of(address).c_str());
  }
  // DEVIATION of the kernel, which asks for the program's capability.
  if (address.port != 0 && address.port < kUnprivilegedPort && !settings_.privileged) {
    id.device = 0;
    return refuse(EACCES,
                  "port %u is below %u, and dappled, which gives such ports only as root, runs as another user.\n"
                  "Take a higher port, or start dappled as root.",
                  address.port, kUnprivilegedPort);
  }
  id.source = address;
  if (!id.one_family_set) id.one_family = address.family == AF_INET || world_.separates_families();
  if (const int error = ports_.bind(id, world_.random()); error != 0) {
    const int refused = refuse_port(error, id);
    id.source = {};
    id.device = 0;
    return refused;
  }
  id.destination.family = address.family;
  enter(id, State::kBound);
  return 0;
}

int Service::bind_ip(Call& call) {
  rdma_ucm_bind_ip command;
  if (!read(call, command)) return refuse_malformed();
  Address address;
  if (!read_address(command.addr, address)) return refuse_family(command.addr);
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  return bind(*id, address);
}

int Service::resolve_ip(Call& call) {
  rdma_ucm_resolve_ip command;
  if (!read(call, command)) return refuse_malformed();
  Address source, destination;
  const bool with_source = command.src_addr.sin6_family != 0;
  if (with_source && !read_address(command.src_addr, source)) return refuse_family(command.src_addr);
  if (!read_address(command.dst_addr, destination)) return refuse_family(command.dst_addr);
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (call.channel.events.size() >= kMaxUnread) return refuse_unread();
  if (id->state != State::kBound) {
    if (!with_source) {
      source = any_address(destination.family);
      source.scope = destination.scope;
    }
    if (const int error = bind(*id, source); error != 0) return error;
  }
  if (id->source.family != destination.family) {
    return refuse(EINVAL,
                  "the id is bound to an IPv%d address, and the destination %s is of the other family.\n"
                  "Bind to an address of the destination's family, or to none.",
                  id->source.family == AF_INET ? 4 : 6, text_of(destination).c_str());
  }
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
  if (!read(call, command)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (id->state != State::kAddressResolved) {
    return refuse(EINVAL, "the id %s.\nCall rdma_resolve_addr() first, and wait for RDMA_CM_EVENT_ADDR_RESOLVED.",
                  words_of(id->state));
  }
  make_route(*id);
  enter(*id, State::kRouteResolved);
  add_event(*id, EventKind::kRouteResolved);
  return 0;
}

// Only a subnet manager of InfiniBand knows services.
int Service::resolve_ib_service(Call& call) {
  soft::CmIbServiceCommand command;
  if (!read(call, command)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = look_up(call.channel, command.id, id); error != 0) return refuse_number(error, command.id);
  if (id->device == 0) return refuse_without_device(*id);
  if (id->state != State::kBound)
    return refuse(EINVAL, "the id %s.\nResolve a service before an address.", words_of(id->state));
  return refuse(EOPNOTSUPP,
                "RoCE has no subnet manager that knows services.\n"
                "Leave RAI_SA out of ai_flags, so that rdma_resolve_addrinfo() asks the resolver of names.");
}

}  // namespace dapple::dappled::rdma_cm
