// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The attributes of the device and its port.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <climits>

#include "coherence/persistence.hpp"
#include "provider/common/clock.hpp"
#include "provider/network/port_mtu.hpp"
#include "provider/protocol/port_speed.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/raw/pacer.hpp"
#include "provider/soft/raw/toeplitz.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/multicast.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/verbs/queue_pairs/raw_limits.hpp"

namespace dapple::soft::verbs {
namespace {

constexpr uint8_t kPhysicalLinkUp = 5;
constexpr uint8_t kPhysicalDisabled = 3;
constexpr uint8_t kGrhRequired = 1;

// Bits of device_cap_flags_ex. Older headers lack their names.
constexpr uint64_t kFlushGlobal = uint64_t{1} << 38;
constexpr uint64_t kFlushPersistent = uint64_t{1} << 39;
constexpr uint64_t kAtomicWrite = uint64_t{1} << 40;

constexpr uint64_t kWindowFlags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
constexpr uint64_t kRawFlags = IBV_DEVICE_MANAGED_FLOW_STEERING | IBV_DEVICE_RAW_IP_CSUM;
constexpr uint64_t kFlushFlags = kFlushGlobal | kFlushPersistent | kAtomicWrite;

// The default identity has the limits that this plug-in serves, and no profile has larger ones.
constexpr DeviceAttributes kServed;
static_assert(kServed.max_qp == most_objects(ObjectKind::kQp) && kServed.max_qp < kQpsOfASlot);
static_assert(kServed.max_cq == most_objects(ObjectKind::kCq) && kServed.max_srq == most_objects(ObjectKind::kSrq));
static_assert(kServed.max_mr == most_objects(ObjectKind::kRegion) && kServed.max_pd == most_objects(ObjectKind::kPd));
static_assert(kServed.max_mw == most_objects(ObjectKind::kWindow));
static_assert(kServed.max_ah == most_objects(ObjectKind::kAddressHandle));
static_assert(kServed.max_qp_wr == kMaxRequests && kServed.max_srq_wr == kMaxRequests);
static_assert(kServed.max_cqe == kMaxCompletions);
static_assert(kServed.max_send_sge == roce::kMaxSegments && kServed.max_recv_sge == roce::kMaxSegments);
static_assert(kServed.max_sge_rd == roce::kMaxSegments && kServed.max_srq_sge == roce::kMaxSegments);
static_assert(kServed.max_qp_rd_atom == kMaxReadsAndAtomics && kServed.max_qp_init_rd_atom == kMaxReadsAndAtomics);
static_assert(kServed.max_inline == kMaxInline);
static_assert(kServed.max_mcast_grp == kMaxAttachments);

bool has_raw_packets(const DeviceAttributes& attributes) {
  return (attributes.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) != 0;
}

uint64_t flags_of(const DeviceAttributes& attributes) {
  uint64_t flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                   IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS | kWindowFlags | kFlushFlags |
                   kRawFlags;
  if (!coherence::machine_persistence().possible) flags &= ~kFlushPersistent;
  if ((attributes.features & kFeatureSrq) == 0) flags &= ~uint64_t{IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC};
  if ((attributes.features & kFeatureMemoryWindows) == 0) flags &= ~kWindowFlags;
  if ((attributes.features & kFeatureFlush) == 0) flags &= ~kFlushFlags;
  flags &= attributes.device_cap_flags;
  return has_raw_packets(attributes) ? flags : flags & ~kRawFlags;
}

void describe(const Context& context, ibv_device_attr& attr) {
  const DeviceAttributes& from = context.attributes();
  const auto number = [](uint32_t value) { return static_cast<int>(std::min<uint32_t>(value, INT_MAX)); };
  attr = {};
  snprintf(attr.fw_ver, sizeof attr.fw_ver, "%s", from.fw_ver);
  attr.node_guid = context.node_guid;
  attr.sys_image_guid = context.node_guid;
  attr.max_mr_size = from.max_mr_size;
  attr.page_size_cap = from.page_size_cap;
  attr.vendor_id = from.vendor_id;
  attr.vendor_part_id = from.vendor_part_id;
  attr.hw_ver = from.hw_ver;
  attr.max_qp = number(from.max_qp);
  attr.max_qp_wr = number(from.max_qp_wr);
  attr.device_cap_flags = static_cast<uint32_t>(flags_of(from));
  // As the kernel: a list that fits both queues.
  attr.max_sge = number(std::min(from.max_send_sge, from.max_recv_sge));
  attr.max_sge_rd = number(from.max_sge_rd);
  attr.max_cq = number(from.max_cq);
  attr.max_cqe = number(from.max_cqe);
  attr.max_mr = number(from.max_mr);
  attr.max_pd = number(from.max_pd);
  attr.max_qp_rd_atom = number(from.max_qp_rd_atom);
  attr.max_res_rd_atom = number(from.max_res_rd_atom);
  attr.max_qp_init_rd_atom = number(from.max_qp_init_rd_atom);
  // order=weak: they are not atomic with the CPU's.
  const bool is_weaker = has_weak_order() && from.atomics == kAtomicsGlobal;
  attr.atomic_cap = is_weaker ? IBV_ATOMIC_HCA : static_cast<ibv_atomic_cap>(from.atomics);
  attr.max_mw = number(from.max_mw);
  attr.max_mcast_grp = number(from.max_mcast_grp);
  attr.max_mcast_qp_attach = number(from.max_mcast_qp_attach);
  attr.max_total_mcast_qp_attach = number(from.max_total_mcast_qp_attach);
  attr.max_ah = number(from.max_ah);
  attr.max_srq = number(from.max_srq);
  attr.max_srq_wr = number(from.max_srq_wr);
  attr.max_srq_sge = number(from.max_srq_sge);
  attr.max_pkeys = static_cast<uint16_t>(from.max_pkeys);
  attr.local_ca_ack_delay = static_cast<uint8_t>(from.local_ca_ack_delay);
  attr.phys_port_cnt = 1;
}

ibv_odp_caps odp_caps_of(const DeviceAttributes& attributes) {
  // Newer names of libibverbs.
  constexpr uint32_t kFlush = 1 << 6, kAtomicWrites = 1 << 7;
  constexpr uint32_t kDatagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
  constexpr uint32_t kUnreliable = kDatagrams | IBV_ODP_SUPPORT_WRITE;
  uint32_t reliable = kUnreliable | IBV_ODP_SUPPORT_READ;
  if (attributes.atomics != kAtomicsNone) reliable |= IBV_ODP_SUPPORT_ATOMIC;
  if ((attributes.features & kFeatureFlush) != 0) reliable |= kFlush | kAtomicWrites;
  return {.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
          .per_transport_caps = {.rc_odp_caps = reliable, .uc_odp_caps = kUnreliable, .ud_odp_caps = kDatagrams}};
}

// As those of a reliable connection, whose newer operations XRC lacks.
uint32_t xrc_odp_caps_of(const DeviceAttributes& attributes) {
  if ((flags_of(attributes) & IBV_DEVICE_XRC) == 0) return 0;
  constexpr uint32_t kAll = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV |
                            IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  return kAll & odp_caps_of(attributes).per_transport_caps.rc_odp_caps;
}

ibv_rss_caps rss_caps() {
  return {.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
          .max_rwq_indirection_tables = most_objects(ObjectKind::kIndirectionTable),
          .max_rwq_indirection_table_size = kMaxTableSize,
          .rx_hash_fields_mask = kHashFields,
          .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ};
}

ibv_tm_caps tag_caps() {
  return {.max_rndv_hdr_size = kMaxRendezvousMessage,
          .max_num_tags = kMaxTags,
          .flags = IBV_TM_CAP_RC,
          .max_ops = kMaxTagOperations,
          .max_sge = kMaxTagSegments};
}

}  // namespace

// Fills in a member of the attributes, if the program's structure has it.
#define DAPPLE_TELL(member, value) \
  if (attr_size >= offsetof(ibv_device_attr_ex, member) + sizeof(attr->member)) attr->member = (value)

// The other fields are zero: the device lacks their features.
int query_device_ex(ibv_context* ibv, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    size_t attr_size) {
  if (!usable(ibv)) return refuse_child();
  if (input != nullptr && input->comp_mask != 0) {
    return refuse(EINVAL, "comp_mask of the input is 0x%x.\nPass a null pointer, or comp_mask 0.", input->comp_mask);
  }
  if (attr_size < sizeof(ibv_device_attr)) {
    return refuse(EINVAL, "the structure for the result has only %zu bytes.\nPass a struct ibv_device_attr_ex.",
                  attr_size);
  }
  memset(static_cast<void*>(attr), 0, attr_size);
  const DeviceAttributes& attributes = context_of(ibv)->attributes();
  describe(*context_of(ibv), attr->orig_attr);
  DAPPLE_TELL(device_cap_flags_ex, flags_of(attributes));
  DAPPLE_TELL(phys_port_cnt_ex, 1);
  DAPPLE_TELL(cq_mod_caps, (ibv_cq_moderation_caps{UINT16_MAX, UINT16_MAX}));
  if ((attributes.features & kFeatureTimeStamps) != 0) {
    DAPPLE_TELL(completion_timestamp_mask, UINT64_MAX);
    DAPPLE_TELL(hca_core_clock, kDeviceClockKhz);
  }
  if ((attributes.features & kFeatureOnDemand) != 0) DAPPLE_TELL(odp_caps, odp_caps_of(attributes));
  if ((attributes.features & kFeatureOnDemand) != 0) DAPPLE_TELL(xrc_odp_caps, xrc_odp_caps_of(attributes));
  if (has_raw_packets(attributes)) {
    DAPPLE_TELL(rss_caps, rss_caps());
    DAPPLE_TELL(max_wq_type_rq, attributes.max_qp);
    DAPPLE_TELL(raw_packet_caps, IBV_RAW_PACKET_CAP_IP_CSUM);
    DAPPLE_TELL(packet_pacing_caps, (ibv_packet_pacing_caps{kMinRate, kMaxRate, 1u << IBV_QPT_RAW_PACKET}));
  }
  if ((attributes.features & kFeatureTagMatching) != 0) DAPPLE_TELL(tm_caps, tag_caps());
  if ((attributes.features & kFeatureDeviceMemory) != 0) DAPPLE_TELL(max_dm_size, kMaxDeviceMemory);
  return 0;
}
#undef DAPPLE_TELL

// As mlx5: the count of the clock, in the field for nanoseconds alone. Time stamps count the same.
int query_rt_values(ibv_context* ibv, ibv_values_ex* values) {
  if (!usable(ibv)) return refuse_child();
  if (const uint32_t unknown = values->comp_mask & ~uint32_t{IBV_VALUES_MASK_RAW_CLOCK}; unknown != 0) {
    return refuse(EINVAL, "comp_mask has 0x%x, which the device does not know.\nUse IBV_VALUES_MASK_RAW_CLOCK alone.",
                  unknown);
  }
  if ((context_of(ibv)->attributes().features & kFeatureTimeStamps) == 0) {
    return refuse(EOPNOTSUPP,
                  "the device's identity (--as) has no clock.\n"
                  "Look at hca_core_clock of ibv_query_device_ex() first.");
  }
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0) return 0;
  values->raw_clock.tv_sec = 0;
  values->raw_clock.tv_nsec = static_cast<long>(now_ns(kDeviceClock));
  return 0;
}

// In 100 Mb/s.
int query_port_speed(ibv_context* ibv, uint32_t port, uint64_t* speed) {
  if (!usable(ibv)) return refuse_child();
  if (port != 1)
    return refuse(EINVAL, "port_num is %u, and the device has one port, number 1.\nCount ports from 1.", port);
  const DeviceAttributes& attributes = context_of(ibv)->attributes();
  *speed = uint64_t{lane_speed(attributes.active_speed).rate} * lanes_of(attributes.active_width);
  return 0;
}

int query_port(ibv_context* ibv, uint8_t port, ibv_port_attr* attr) {
  if (!usable(ibv)) return refuse_child();
  if (port != 1)
    return refuse(EINVAL, "port_num is %u, and the device has one port, number 1.\nCount ports from 1.", port);
  DeviceInfo info;
  const int error = context_of(ibv)->refresh(info);
  if (error != 0) return error;
  // Field by field: the library's structure may be shorter or longer than our header's.
  attr->state = info.up != 0 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = roce_mtu(info.netdev_mtu);
  attr->gid_tbl_len = kMaxGids;
  attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attr->max_msg_sz = info.attributes.max_msg_sz;
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
  attr->active_width = static_cast<uint8_t>(info.attributes.active_width);
  attr->active_speed = static_cast<uint8_t>(info.attributes.active_speed);
  attr->phys_state = info.up != 0 ? kPhysicalLinkUp : kPhysicalDisabled;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->flags = kGrhRequired;
  attr->port_cap_flags2 = 0;
  return 0;
}

// For each flag: a packet's bytes become visible in any order, except the last (copy_last_word_last()), so neither
// messages nor aligned blocks of 128 bytes are in order.
int query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) {
  return 0;
}

}  // namespace dapple::soft::verbs
