// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "rpma/srq.hpp"

#include <cerrno>
#include <new>
#include <utility>

#include "ibverbs-glue/no_cancel.hpp"
#include "rpma/cfg.hpp"
#include "rpma/common/destroy_once.hpp"
#include "rpma/common/export.hpp"
#include "rpma/common/log.hpp"
#include "rpma/common/refusal.hpp"
#include "rpma/memory/mr.hpp"
#include "rpma/post_refusals.hpp"

using namespace dapple::rpma;

RPMA_EXPORT int rpma_srq_new(rpma_peer* peer, rpma_srq_cfg* cfg, rpma_srq** srq_ptr) {
  if (!peer || !srq_ptr) return refuse_null(__func__, {NAMED(peer), NAMED(srq_ptr)});
  const dapple::NoCancel whole;
  const rpma_srq_cfg& wanted = cfg ? *cfg : kDefaultSrqCfg;
  std::unique_ptr<rpma_srq> made(new (std::nothrow) rpma_srq);
  if (!made) return refuse_memory();
  if (const dappledv_region_attr* attr = peer->maintenance()) {
    made->slots.reset(new (std::nothrow) RecvSlots(*attr));
    if (!made->slots) return refuse_memory();
  }
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = wanted.rq_size;
  attr.attr.max_sge = 1;
  made->srq.reset(ibv_create_srq(peer->pd.get(), &attr));
  if (!made->srq) {
    explain_queue(errno);
    return FAILED("ibv_create_srq", errno);
  }
  if (const int entries = cq_entries(wanted.rcq_size)) {
    if (const int error = make_cq(*peer, entries, nullptr, made->rcq)) return error;
  }
  *srq_ptr = made.release();
  return 0;
}

RPMA_EXPORT int rpma_srq_delete(rpma_srq** srq_ptr) {
  if (!srq_ptr) return refuse_null(__func__, {NAMED(srq_ptr)});
  const dapple::NoCancel whole;
  const std::unique_ptr<rpma_srq> srq(std::exchange(*srq_ptr, nullptr));
  if (!srq) return 0;
  int result = srq->rcq ? srq->rcq->close() : 0;
  if (const int error = destroy_once(srq->srq)) result = FAILED("ibv_destroy_srq", error);
  return result;
}

RPMA_EXPORT int rpma_srq_recv(rpma_srq* srq, rpma_mr_local* dst, size_t offset, size_t len, const void* op_context) {
  if (!srq || (!dst && (offset != 0 || len != 0)) || len > UINT32_MAX) return refuse_recv(srq, dst, offset, len);
  const int error = post_recv(srq->srq.get(), ibv_post_srq_recv, srq->slots.get(), dst, offset, len, op_context);
  return error ? FAILED("ibv_post_srq_recv", error) : 0;
}

RPMA_EXPORT int rpma_srq_get_rcq(const rpma_srq* srq, rpma_cq** rcq_ptr) {
  if (!srq || !rcq_ptr) return refuse_null(__func__, {NAMED(srq), NAMED(rcq_ptr)});
  *rcq_ptr = srq->rcq.get();
  return 0;
}
