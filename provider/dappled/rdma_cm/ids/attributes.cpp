// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/ids/attributes.hpp"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "provider/dappled/rdma_cm/ids/constants.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

// IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT, which older headers lack. The kernel adds them for devices
// that have Flush, as ours do.
constexpr uint32_t kFlush = 1 << 8 | 1 << 9;

int init_attributes(const CmId& id, ib_uverbs_qp_attr& attributes) {
  attributes.qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.responder_resources != 0)
    attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | kFlush;
  attributes.port_num = kPort;
  return 0;
}

int rtr_attributes(const CmId& id, uint32_t gid_index, ib_uverbs_qp_attr& attributes) {
  if (id.exchange == Exchange::kReqSent) return EINVAL;
  attributes.qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  write_ah(id, gid_index, id.route.destination, attributes.ah_attr);
  attributes.path_mtu = id.route.mtu;
  attributes.dest_qp_num = id.remote_qpn;
  attributes.rq_psn = id.psn;
  if (id.qp_type != IBV_QPT_RC) return 0;
  attributes.qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  attributes.max_dest_rd_atomic = id.responder_resources;
  return 0;
}

int rts_attributes(const CmId& id, ib_uverbs_qp_attr& attributes) {
  if (id.exchange == Exchange::kReqSent) return EINVAL;
  attributes.qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  attributes.sq_psn = id.remote_psn;
  if (id.qp_type != IBV_QPT_RC) return 0;
  attributes.qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT;
  attributes.retry_cnt = id.retry_count;
  attributes.rnr_retry = id.rnr_retry_count;
  attributes.max_rd_atomic = id.initiator_depth;
  attributes.timeout = id.has_timeout ? id.timeout : id.ack_timeout;
  return 0;
}

// Before there is a connection, and for datagrams.
int first_attributes(CmId& id, ib_uverbs_qp_attr& attributes) {
  attributes.qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  attributes.port_num = kPort;
  if (!id.is_datagram()) {
    attributes.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
    return 0;
  }
  attributes.qp_attr_mask |= IBV_QP_QKEY;
  if (id.qkey == 0) id.qkey = kUdpQkey;
  attributes.qkey = id.qkey;
  return 0;
}

}  // namespace

void write_ah(const CmId& id, uint32_t gid_index, const Gid& destination, ib_uverbs_ah_attr& attributes) {
  memcpy(attributes.grh.dgid, destination.data(), destination.size());
  attributes.grh.sgid_index = static_cast<uint8_t>(gid_index);
  attributes.grh.hop_limit = id.route.hop_limit;
  attributes.grh.traffic_class = id.route.traffic_class;
  attributes.sl = id.route.traffic_class >> 5;
  attributes.is_global = 1;
  attributes.port_num = kPort;
}

int write_qp_attributes(CmId& id, uint32_t gid_index, ib_uverbs_qp_attr& attributes) {
  if (id.connection == cm::kNoId || id.is_datagram()) {
    const int error = first_attributes(id, attributes);
    if (error == 0 && attributes.qp_state == IBV_QPS_RTR) attributes.rq_psn = id.psn;
    return error;
  }
  if (id.exchange == Exchange::kNone || id.exchange == Exchange::kOver) return EINVAL;
  switch (attributes.qp_state) {
    case IBV_QPS_INIT:
      return init_attributes(id, attributes);
    case IBV_QPS_RTR:
      return rtr_attributes(id, gid_index, attributes);
    case IBV_QPS_RTS:
      return rts_attributes(id, attributes);
    default:
      return EINVAL;
  }
}

}  // namespace dapple::dappled::rdma_cm
