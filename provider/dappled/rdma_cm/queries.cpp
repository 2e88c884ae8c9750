// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// QUERY_ROUTE and INIT_QP_ATTR.
#include <endian.h>
#include <infiniband/verbs.h>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/attributes.hpp"
#include "provider/dappled/rdma_cm/ids/constants.hpp"
#include "provider/dappled/rdma_cm/ids/words.hpp"
#include "provider/network/gid.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint8_t kEqual = 2;  // IB_SA_EQ
constexpr uint16_t kDefaultPkey = 0xFFFF;

void write_path(const Route& route, ib_user_path_rec& path) {
  memcpy(path.sgid, route.source.data(), route.source.size());
  memcpy(path.dgid, route.destination.data(), route.destination.size());
  path.reversible = 1;
  path.pkey = htobe16(kDefaultPkey);
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kEqual;
  path.mtu = route.mtu;
  path.hop_limit = route.hop_limit;
  path.traffic_class = route.traffic_class;
  path.sl = route.traffic_class >> 5;
  path.packet_life_time = route.lifetime;
}

bool has_address(const soft::DeviceInfo& device) {
  for (const soft::GidEntry& entry : device.gids) {
    if (entry.valid != 0 && !soft::is_link_local(entry.gid)) return true;
  }
  return false;
}

// The kernel's devices have no loopback address, so an id that is bound to such an address has no device there and
// stands for all of them. libfabric looks for the devices of a server in this way. If lo's device is the only one, the
// id means that device. So does an id of datagrams: librdmacm's rsockets bind one and use its device at once.
bool stands_for_all(const CmId& id, const DeviceTable& devices, const soft::Rails& rails) {
  if (!id.source.is_loopback() || id.port_space == RDMA_PS_UDP ||
      (id.state != State::kBound && id.state != State::kListen))
    return false;
  for (uint32_t i = 0; i < devices.count(); i++) {
    const soft::DeviceInfo& device = devices.at(i);
    if (device.loopback == 0 && device.up != 0 && rails.has(device) && has_address(device)) return true;
  }
  return false;
}

}  // namespace

int Service::query_route(Call& call) {
  rdma_ucm_query command;
  // The struct of this command is the one of DESTROY_ID: response and id.
  if (!read(call, command, sizeof(rdma_ucm_destroy_id))) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = look_up(call.channel, command.id, id); error != 0) return refuse_number(error, command.id);
  rdma_ucm_query_route_resp response = {};
  write_address(id->source, response.src_addr);
  write_address(id->destination, response.dst_addr);
  const soft::DeviceInfo* device = world_.devices().find(id->device);
  if (device != nullptr && !stands_for_all(*id, world_.devices(), world_.rails(call.channel))) {
    response.node_guid = htobe64(device->guid);
    response.ibdev_index = device->index;
    response.port_num = kPort;
    response.num_paths = id->route.known ? 1 : 0;
    if (id->route.known) {
      write_path(id->route, response.ib_route[0]);
    } else {
      memcpy(response.ib_route[0].sgid, id->source.gid.data(), id->source.gid.size());
      memcpy(response.ib_route[0].dgid, id->destination.gid.data(), id->destination.gid.size());
      response.ib_route[0].pkey = htobe16(kDefaultPkey);
    }
  }
  return write(call, response, offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

int Service::init_qp_attr(Call& call) {
  rdma_ucm_init_qp_attr command;
  if (!read(call, command)) return refuse_malformed();
  if (call.room < sizeof(ib_uverbs_qp_attr)) return refuse_room();
  if (command.qp_state > IBV_QPS_ERR) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = look_up(call.channel, command.id, id); error != 0) return refuse_number(error, command.id);
  if (id->device == 0) return refuse_without_device(*id);
  ib_uverbs_qp_attr attributes = {};
  attributes.qp_state = command.qp_state;
  const uint32_t qkey = id->qkey;
  if (const int error = write_qp_attributes(*id, world_.gid_index(*id), attributes); error != 0) {
    return refuse(error,
                  "the id %s, so it has no attributes for the queue pair's state %u.\n"
                  "Let rdma_connect() and rdma_accept() change the queue pair's state.",
                  words_of(id->state), command.qp_state);
  }
  if (id->qkey != qkey) note(*id);
  return write(call, attributes);
}

}  // namespace dapple::dappled::rdma_cm
