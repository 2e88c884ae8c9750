// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The attributes of the device and its port.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <climits>

#include "coherence/persistence.hpp"
#include "provider/member/port_mtu.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/multicast.hpp"
#include "provider/soft/transport/post.hpp"

namespace dapple::soft::verbs {
namespace {

constexpr uint8_t kWidth1x = 1;
constexpr uint8_t kSpeed2_5 = 1;
constexpr uint8_t kPhysicalLinkUp = 5;
constexpr uint8_t kPhysicalDisabled = 3;
constexpr uint8_t kGrhRequired = 1;
constexpr uint32_t kMaxMessage = 1u << 31;

// Bits of device_cap_flags_ex. Older headers lack their names.
constexpr uint64_t kFlushGlobal = uint64_t{1} << 38;
constexpr uint64_t kFlushPersistent = uint64_t{1} << 39;
constexpr uint64_t kAtomicWrite = uint64_t{1} << 40;

// No vendor's: bit 1 of its first byte tells that nobody has assigned it.
constexpr uint32_t kVendorId = 0x0ADA99;

static_assert(most_objects(ObjectKind::kQp) < kQpsOfASlot);

constexpr int most(ObjectKind kind) {
  return static_cast<int>(most_objects(kind));
}

void describe(const Context& context, ibv_device_attr& attr) {
  attr = {};
  attr.node_guid = context.node_guid;
  attr.sys_image_guid = context.node_guid;
  attr.max_mr_size = UINT64_MAX;
  attr.page_size_cap = 0xFFFFF000;
  attr.vendor_id = kVendorId;
  attr.max_qp = most(ObjectKind::kQp);
  attr.max_qp_wr = kMaxRequests;
  attr.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                          IBV_DEVICE_MEM_MGT_EXTENSIONS;
  attr.max_sge = roce::kMaxSegments;
  attr.max_sge_rd = roce::kMaxSegments;
  attr.max_cq = most(ObjectKind::kCq);
  attr.max_cqe = kMaxCompletions;
  attr.max_mr = most(ObjectKind::kRegion);
  attr.max_pd = most(ObjectKind::kPd);
  attr.max_qp_rd_atom = kMaxReadsAndAtomics;
  attr.max_res_rd_atom = kMaxReadsAndAtomics * attr.max_qp;
  attr.max_qp_init_rd_atom = kMaxReadsAndAtomics;
  // The device's atomics are the CPU's own.
  attr.atomic_cap = IBV_ATOMIC_GLOB;
  attr.max_mw = most(ObjectKind::kWindow);
  attr.max_mcast_grp = kMaxAttachments;
  attr.max_mcast_qp_attach = kMaxAttachments;
  attr.max_total_mcast_qp_attach = kMaxAttachments;
  attr.max_ah = most(ObjectKind::kAddressHandle);
  attr.max_srq = most(ObjectKind::kSrq);
  attr.max_srq_wr = kMaxRequests;
  attr.max_srq_sge = roce::kMaxSegments;
  attr.max_pkeys = 1;
  attr.local_ca_ack_delay = 15;
  attr.phys_port_cnt = 1;
}

}  // namespace

// The other fields are zero: the device lacks their features.
int query_device_ex(ibv_context* ibv, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    size_t attr_size) {
  if (!usable(ibv)) return ENODEV;
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (attr_size < sizeof(ibv_device_attr)) return EINVAL;
  memset(static_cast<void*>(attr), 0, attr_size);
  describe(*context_of(ibv), attr->orig_attr);
  if (attr_size >= offsetof(ibv_device_attr_ex, device_cap_flags_ex) + sizeof(attr->device_cap_flags_ex)) {
    attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags | kFlushGlobal | kAtomicWrite;
    if (coherence::machine_persistence().possible) attr->device_cap_flags_ex |= kFlushPersistent;
  }
  if (attr_size >= offsetof(ibv_device_attr_ex, phys_port_cnt_ex) + sizeof(attr->phys_port_cnt_ex))
    attr->phys_port_cnt_ex = 1;
  return 0;
}

int query_port(ibv_context* ibv, uint8_t port, ibv_port_attr* attr) {
  if (!usable(ibv)) return ENODEV;
  if (port != 1) return EINVAL;
  DeviceInfo info;
  const int error = context_of(ibv)->refresh(info);
  if (error != 0) return error;
  // Field by field: the library's structure may be shorter or longer than our header's.
  attr->state = info.up != 0 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = roce_mtu(info.netdev_mtu);
  attr->gid_tbl_len = kMaxGids;
  attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attr->max_msg_sz = kMaxMessage;
  attr->bad_pkey_cntr = 0;
  attr->qkey_viol_cntr = 0;
  attr->pkey_tbl_len = 1;
  attr->lid = 0;
  attr->sm_lid = 0;
  attr->lmc = 0;
  attr->max_vl_num = 1;
  attr->sm_sl = 0;
  attr->subnet_timeout = 0;
  attr->init_type_reply = 0;
  attr->active_width = kWidth1x;
  attr->active_speed = kSpeed2_5;
  attr->phys_state = info.up != 0 ? kPhysicalLinkUp : kPhysicalDisabled;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->flags = kGrhRequired;
  attr->port_cap_flags2 = 0;
  return 0;
}

// A packet's bytes become visible in any order, except the last.
int query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) {
  return 0;
}

}  // namespace dapple::soft::verbs
