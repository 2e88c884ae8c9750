// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/link.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "rpma/common/destroy_once.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/srq.hpp"

namespace dapple::rpma {
namespace {

constexpr uint32_t kMaxSge = 1;
constexpr uint32_t kMaxInline = 8;  // bytes: an atomic write
constexpr uint8_t kMaxRetries = 7;

ibv_qp_cap capacities(const rpma_conn_cfg& cfg) {
  ibv_qp_cap cap{};
  cap.max_send_wr = cfg.sq_size;
  cap.max_recv_wr = cfg.rq_size;
  cap.max_send_sge = kMaxSge;
  cap.max_recv_sge = kMaxSge;
  cap.max_inline_data = kMaxInline;
  return cap;
}

}  // namespace

bool PrivateData::make_room() noexcept {
  bytes.reset(new (std::nothrow) uint8_t[UINT8_MAX]);
  return bytes != nullptr;
}

void PrivateData::store(const verbs::CmEvent& event) noexcept {
  assert(event.private_data.size() <= UINT8_MAX);
  size = static_cast<uint8_t>(event.private_data.size());
  std::copy_n(event.private_data.data(), size, bytes.get());
}

int Link::build(const rpma_peer& peer, const rpma_conn_cfg& cfg, const char* function) noexcept {
  rpma_srq* const srq = cfg.srq;
  rpma_cq* const srq_cq = srq ? srq->rcq.get() : nullptr;
  const bool shared = cfg.shared_channel;
  if (shared && srq_cq) {
    LOG(ERROR, "a shared completion channel cannot serve an SRQ's own CQ");
    return refuse(
        function, RPMA_E_INVAL,
        "cfg has a shared completion channel and an SRQ with a CQ of its own, which has another channel.\nCall "
        "rpma_srq_cfg_set_rcq_size() with 0 for the SRQ, or do not share the channel.");
  }
  if (!data.make_room()) return refuse_memory();
  if (shared) {
    channel.reset(ibv_create_comp_channel(peer.pd->context));
    if (!channel) return FAILED("ibv_create_comp_channel", errno);
  }
  if (const int error = make_cq(peer, cq_entries(cfg.cq_size), channel.get(), cq)) return error;
  if (const int entries = cq_entries(cfg.rcq_size); entries && !srq_cq) {
    if (const int error = make_cq(peer, entries, channel.get(), rcq)) return error;
  }
  const rpma_cq* const recv_cq = srq_cq ? srq_cq : rcq ? rcq.get() : cq.get();
  return make_qp(peer, cfg, recv_cq->cq.get());
}

int Link::make_qp(const rpma_peer& peer, const rpma_conn_cfg& cfg, ibv_cq* recv_cq) noexcept {
  rpma_srq* const srq = cfg.srq;
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = cq->cq.get();
  attr.recv_cq = recv_cq;
  attr.srq = srq ? srq->srq.get() : nullptr;
  attr.cap = capacities(cfg);
  attr.qp_type = IBV_QPT_RC;
  attr.pd = peer.pd.get();
  // libibverbs may lack a feature that the kernel has. Without native operations the extended call is avoided, because
  // not every device supports it.
  const uint64_t atomic_write = peer.native & native::kAtomicWrite ? native::kQpWithAtomicWrite : 0;
  const uint64_t flush = peer.native & native::kFlushAny ? native::kQpWithFlush : 0;
  uint64_t tried = 0;
  for (const uint64_t operations : {atomic_write | flush, atomic_write, flush, uint64_t{0}}) {
    if (operations != 0 && operations == tried) continue;
    tried = operations;
    ibv_qp_init_attr_ex wanted = attr;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    if (operations) {
      wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      wanted.send_ops_flags = operations;
    }
    if (rdma_create_qp_ex(id.get(), &wanted)) {
      if (operations) continue;
      explain_queue(errno);
      return FAILED("rdma_create_qp_ex", errno);
    }
    qp.reset(id.get());
    native = native::operations_of(id->qp, operations);
    return make_slots(peer, srq, wanted.cap);
  }
  return RPMA_E_UNKNOWN;  // no refusal: not reached, the last try returns
}

int Link::make_slots(const rpma_peer& peer, rpma_srq* srq, const ibv_qp_cap& cap) noexcept {
  const dappledv_region_attr* attr = peer.maintenance();
  if (!attr) return 0;
  send_slots.reset(new (std::nothrow) SendSlots(*attr, std::max<uint32_t>(cap.max_send_wr, 1)));
  if (!send_slots || !send_slots->good()) return refuse_memory();
  if (srq) {
    recv_slots = srq->slots.get();
    return 0;
  }
  own_recv_slots.reset(new (std::nothrow) RecvSlots(*attr));
  recv_slots = own_recv_slots.get();
  return recv_slots ? 0 : refuse_memory();
}

int Link::migrate() noexcept {
  events.reset(rdma_create_event_channel());
  if (!events) return FAILED("rdma_create_event_channel", errno);
  if (rdma_migrate_id(id.get(), events.get())) return FAILED("rdma_migrate_id", errno);
  return 0;
}

int Link::close() noexcept {
  int result = 0;
  const auto note = [&result](int error) {
    if (result == 0) result = error;
  };
  // With the queue pair, a driver may remove its completions from the CQs.
  if (rcq) rcq->retire_rest();
  if (cq) cq->retire_rest();
  qp.reset();
  if (rcq) note(std::exchange(rcq, nullptr)->close());
  if (cq) note(std::exchange(cq, nullptr)->close());
  if (const int error = destroy_once(channel)) note(FAILED("ibv_destroy_comp_channel", error));
  if (id) {
    if (rdma_destroy_id(id.get()) == 0) {
      (void)id.release();
    } else {
      note(FAILED("rdma_destroy_id", errno));
    }
  }
  return result;
}

rdma_conn_param connection_parameters(const rpma_conn_private_data* data) noexcept {
  rdma_conn_param param{};
  if (data) {
    param.private_data = data->ptr;
    param.private_data_len = data->len;
  }
  param.responder_resources = RDMA_MAX_RESP_RES;
  param.initiator_depth = RDMA_MAX_INIT_DEPTH;
  param.flow_control = 1;
  param.retry_count = kMaxRetries;
  param.rnr_retry_count = kMaxRetries;
  return param;
}

}  // namespace dapple::rpma
