// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/raw_rig.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/native/namespaces.hpp"

namespace dapple::tests {
namespace {

constexpr unsigned char kMacOfA[] = {2, 0, 0, 0, 0, 0xA}, kMacOfB[] = {2, 0, 0, 0, 0, 0xB};
constexpr uint32_t kAddressOfA = 0x0A4D0001, kAddressOfB = 0x0A4D0002;  // 10.77.0.1 and 10.77.0.2

bool is_on(ibv_context* context, uint32_t netdev_index) {
  ibv_gid_entry entry = {};
  return ibv_query_gid_ex(context, 1, 0, &entry, 0) == 0 && entry.ndev_ifindex == netdev_index;
}

ibv_context* open_on(const char* netdev) {
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* found = nullptr;
  for (ibv_device** at = list; list != nullptr && *at != nullptr && found == nullptr; ++at) {
    ibv_context* context = ibv_open_device(*at);
    if (context == nullptr) continue;
    if (is_on(context, if_nametoindex(netdev))) {
      found = context;
    } else {
      ibv_close_device(context);
    }
  }
  if (list != nullptr) ibv_free_device_list(list);
  return found;
}

}  // namespace

bool make_veth_ends() {
  return run(
      "ip link add va type veth peer name vb && "
      "for each in va:0a vb:0b; do ip link set ${each%:*} addrgenmode none address 02:00:00:00:00:${each#*:} up || "
      "exit 1; "
      "done");
}

void need_veth_pair() {
  need_new_namespace();
  if (!make_veth_ends()) skip_program("no veth pair can be made");
}

bool open_end(RawEnd& end, const char* netdev) {
  end.context = open_on(netdev);
  if (end.context == nullptr) return false;
  end.pd = ibv_alloc_pd(end.context);
  end.channel = ibv_create_comp_channel(end.context);
  end.cq = ibv_create_cq(end.context, 4 * kRawSlots, nullptr, end.channel, 0);
  if (end.pd == nullptr || end.cq == nullptr) return false;
  end.mr = ibv_reg_mr(end.pd, end.buffer, sizeof end.buffer, int{IBV_ACCESS_LOCAL_WRITE});
  return end.mr != nullptr;
}

void close_end(RawEnd& end) {
  if (end.mr != nullptr) ibv_dereg_mr(end.mr);
  if (end.cq != nullptr) ibv_destroy_cq(end.cq);
  if (end.channel != nullptr) ibv_destroy_comp_channel(end.channel);
  if (end.pd != nullptr) ibv_dealloc_pd(end.pd);
  if (end.context != nullptr) ibv_close_device(end.context);
}

ibv_qp* make_raw_qp(RawEnd& end, ibv_srq* srq) {
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = end.cq;
  attr.srq = srq;
  attr.cap = {kRawSlots, kRawSlots, 4, 4, 128};
  attr.qp_type = IBV_QPT_RAW_PACKET;
  errno = 0;
  return ibv_create_qp(end.pd, &attr);
}

bool change_raw_qp(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  attr.port_num = 1;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)) == 0;
}

bool raw_qp_to_rts(ibv_qp* qp) {
  return change_raw_qp(qp, IBV_QPS_INIT) && change_raw_qp(qp, IBV_QPS_RTR) && change_raw_qp(qp, IBV_QPS_RTS);
}

UdpFlow udp_flow(uint16_t port, uint16_t priority) {
  UdpFlow flow = {};
  flow.attr.type = IBV_FLOW_ATTR_NORMAL;
  flow.attr.size = sizeof flow;
  flow.attr.priority = priority;
  flow.attr.num_of_specs = 3;
  flow.attr.port = 1;
  flow.eth.type = IBV_FLOW_SPEC_ETH;
  flow.eth.size = sizeof flow.eth;
  flow.eth.val.ether_type = htons(ETHERTYPE_IP);
  flow.eth.mask.ether_type = 0xFFFF;
  flow.ipv4.type = IBV_FLOW_SPEC_IPV4;
  flow.ipv4.size = sizeof flow.ipv4;
  flow.udp.type = IBV_FLOW_SPEC_UDP;
  flow.udp.size = sizeof flow.udp;
  flow.udp.val.dst_port = htons(port);
  flow.udp.mask.dst_port = 0xFFFF;
  return flow;
}

ibv_flow* make_flow(ibv_qp* qp, UdpFlow flow) {
  errno = 0;
  return ibv_create_flow(qp, reinterpret_cast<ibv_flow_attr*>(&flow));
}

size_t write_udp(unsigned char* to, uint16_t source_port, uint16_t destination_port, size_t payload, char mark) {
  const auto put = [&](size_t at, uint32_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) to[at + i] = static_cast<unsigned char>(value >> 8 * (size - 1 - i));
  };
  memset(to, 0, kUdpHeaders);
  memcpy(to, kMacOfB, sizeof kMacOfB);
  memcpy(to + 6, kMacOfA, sizeof kMacOfA);
  put(12, ETHERTYPE_IP, 2);
  to[14] = 0x45;
  put(16, static_cast<uint32_t>(28 + payload), 2);
  to[22] = 64;
  to[23] = IPPROTO_UDP;
  put(26, kAddressOfA, 4);
  put(30, kAddressOfB, 4);
  put(34, source_port, 2);
  put(36, destination_port, 2);
  put(38, static_cast<uint32_t>(8 + payload), 2);
  for (size_t i = 0; i < payload; ++i)
    to[kUdpHeaders + i] = static_cast<unsigned char>(mark + static_cast<char>(i % 7));
  return kUdpHeaders + payload;
}

int post_frame(RawEnd& end, ibv_qp* qp, uint64_t id, uint32_t slot, size_t size, unsigned flags) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.slot(slot)), static_cast<uint32_t>(size), end.mr->lkey};
  ibv_send_wr wr = {}, *bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = &segment;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  return ibv_post_send(qp, &wr, &bad);
}

int post_room(RawEnd& end, ibv_qp* qp, uint64_t id, uint32_t slot, uint32_t size) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.slot(slot)), size, end.mr->lkey};
  ibv_recv_wr wr = {}, *bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = &segment;
  wr.num_sge = 1;
  return ibv_post_recv(qp, &wr, &bad);
}

}  // namespace dapple::tests
