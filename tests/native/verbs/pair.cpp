// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/pair.hpp"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <new>

#include "tests/native/clock.hpp"

namespace dapple::tests {
namespace {

constexpr uint32_t kQkey = 0x1111;

bool make_end(Pair& pair, End& end, const PairOptions& options, bool receives_shared) {
  const bool channel = &end == &pair.b && options.channel;
  end.cq = ibv_create_cq(pair.context, static_cast<int>(options.cq_size), nullptr, channel ? pair.channel : nullptr, 0);
  if (end.cq == nullptr) return false;
  const unsigned rights = kPeerRights | (options.windows ? unsigned{IBV_ACCESS_MW_BIND} : 0);
  end.mr = ibv_reg_mr(pair.pd, end.buffer, sizeof(end.buffer), static_cast<int>(rights));
  if (end.mr == nullptr) return false;
  ibv_qp_init_attr_ex attr = {};
  attr.send_cq = attr.recv_cq = end.cq;
  attr.srq = receives_shared ? pair.srq : nullptr;
  attr.cap = {kDepth, kDepth, options.pieces, options.pieces, options.inline_bytes};
  attr.qp_type = options.type;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pair.pd;
  if (options.operations != 0) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = options.operations;
  }
  end.qp = ibv_create_qp_ex(pair.context, &attr);
  return end.qp != nullptr;
}

bool make(Pair& pair, const PairOptions& options) {
  pair.context = open_loopback();
  if (pair.context == nullptr) return false;
  pair.pd = ibv_alloc_pd(pair.context);
  if (pair.pd == nullptr) return false;
  if (options.channel) {
    pair.channel = ibv_create_comp_channel(pair.context);
    if (pair.channel == nullptr) return false;
  }
  if (options.srq) {
    ibv_srq_init_attr attr = {};
    attr.attr = {kDepth, 4, 0};
    pair.srq = ibv_create_srq(pair.pd, &attr);
    if (pair.srq == nullptr) return false;
  }
  return make_end(pair, pair.a, options, false) && make_end(pair, pair.b, options, options.srq) &&
         connect(pair.a.qp, pair.b.qp->qp_num, options.timeout) &&
         connect(pair.b.qp, pair.a.qp->qp_num, options.timeout);
}

void drop(End& end) {
  if (end.qp != nullptr) ibv_destroy_qp(end.qp);
  if (end.mr != nullptr) ibv_dereg_mr(end.mr);
  if (end.cq != nullptr) ibv_destroy_cq(end.cq);
}

}  // namespace

Pair::~Pair() {
  drop(a);
  drop(b);
  if (srq != nullptr) ibv_destroy_srq(srq);
  if (channel != nullptr) ibv_destroy_comp_channel(channel);
  if (pd != nullptr) ibv_dealloc_pd(pd);
  if (context != nullptr) ibv_close_device(context);
}

uint8_t index_of_loopback(ibv_context* context) {
  static constexpr unsigned char kLoopback[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
  for (uint8_t i = 0; i < 64; ++i) {
    ibv_gid_entry entry;
    if (ibv_query_gid_ex(context, 1, i, &entry, 0) == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
        memcmp(entry.gid.raw, kLoopback, sizeof kLoopback) == 0)
      return i;
  }
  return 255;
}

ibv_context* open_loopback() {
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* found = nullptr;
  for (ibv_device** at = list; list != nullptr && *at != nullptr && found == nullptr; ++at) {
    ibv_context* context = ibv_open_device(*at);
    if (context == nullptr) continue;
    if (index_of_loopback(context) != 255) {
      found = context;
    } else {
      ibv_close_device(context);
    }
  }
  if (list != nullptr) ibv_free_device_list(list);
  return found;
}

Pair* make_pair(const PairOptions& options) {
  Pair* pair = new Pair;
  if (make(*pair, options)) return pair;
  const int error = errno;
  delete pair;
  errno = error;
  return nullptr;
}

bool connect(ibv_qp* qp, uint32_t remote, uint8_t timeout) {
  ibv_gid gid;
  const uint8_t index = index_of_loopback(qp->context);
  return ibv_query_gid(qp->context, 1, index, &gid) == 0 && connect(qp, remote, timeout, index, gid);
}

bool connect(ibv_qp* qp, uint32_t remote, uint8_t timeout, uint8_t source, const ibv_gid& destination) {
  const bool ud = qp->qp_type == IBV_QPT_UD;
  const bool requests = qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND;
  const bool responds = qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kPeerRights;
  attr.qkey = kQkey;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) != 0)
    return false;
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = remote;
  attr.rq_psn = 0xFFFFFE;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.grh.sgid_index = source;
  attr.ah_attr.grh.dgid = destination;
  int mask = IBV_QP_STATE;
  if (!ud) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (responds) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp, &attr, mask) != 0) return false;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 0xFFFFFE;
  attr.timeout = timeout;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 4;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (requests || responds) mask |= IBV_QP_TIMEOUT;
  if (requests) mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp, &attr, mask) == 0;
}

ibv_ah* make_own_address(const Pair& pair) {
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.hop_limit = 64;
  attr.grh.sgid_index = index_of_loopback(pair.context);
  if (ibv_query_gid(pair.context, 1, attr.grh.sgid_index, &attr.grh.dgid) != 0) return nullptr;
  return ibv_create_ah(pair.pd, &attr);
}

int post_datagram(const End& end, uint32_t length, ibv_qp* from, ibv_ah* address, const ibv_qp* to) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.buffer), length, end.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud.ah = address;
  request.wr.ud.remote_qpn = to->qp_num;
  request.wr.ud.remote_qkey = kQkey;
  return ibv_post_send(from, &request, &bad);
}

bool to_error(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

int post_send(ibv_qp* qp, End& end, uint64_t id, ibv_wr_opcode opcode, size_t offset, uint32_t length,
              const End* remote, size_t remote_offset, unsigned flags) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.buffer) + offset, length, end.mr->lkey};
  ibv_send_wr request = {};
  request.wr_id = id;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = flags;
  request.imm_data = 0x12345678;
  if (remote != nullptr) {
    request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(remote->buffer) + remote_offset;
    request.wr.rdma.rkey = remote->mr->rkey;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &request, &bad);
}

int post_send(End& end, uint64_t id, ibv_wr_opcode opcode, size_t offset, uint32_t length, const End* remote,
              size_t remote_offset, unsigned flags) {
  return post_send(end.qp, end, id, opcode, offset, length, remote, remote_offset, flags);
}

int post_receive(End& end, uint64_t id, size_t offset, uint32_t length) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(end.buffer) + offset, length, end.mr->lkey};
  ibv_recv_wr request = {id, nullptr, &segment, 1};
  ibv_recv_wr* bad = nullptr;
  return end.qp->srq != nullptr ? ibv_post_srq_recv(end.qp->srq, &request, &bad)
                                : ibv_post_recv(end.qp, &request, &bad);
}

bool wait_for(ibv_cq* cq, ibv_wc& completion) {
  for (const double end = now() + kPatience; now() <= end;) {
    const int got = ibv_poll_cq(cq, 1, &completion);
    if (got != 0) return got == 1;
  }
  return false;
}

bool wait_for_byte(const volatile char* byte, char value) {
  const timespec moment = {0, 1000000};
  for (const double end = now() + kPatience; now() <= end;) {
    if (*byte == value) return true;
    nanosleep(&moment, nullptr);
  }
  return false;
}

}  // namespace dapple::tests
