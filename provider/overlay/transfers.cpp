// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of the data path, for contexts whose policy has a transfer watch: under the emulator only.
#include <assert.h>

#include "provider/overlay/attached.hpp"

namespace dapple::provider {
namespace {

TransferWatch& watch_of(const Attached& attached) {
  assert(attached.request.policy != nullptr && attached.request.policy->transfers() != nullptr);
  return *attached.request.policy->transfers();
}

bool find_segment(const ibv_context* context, const ibv_sge& segment, iovec* range) {
  const ReadLock lock;
  const Attached* attached = find_attached(context);
  const Region* region = attached == nullptr ? nullptr : attached->regions.find(segment.lkey);
  return region != nullptr && translate(*region, segment, range);
}

bool signals_all(ibv_qp* qp) {
  const auto query = reinterpret_cast<QueryQp>(attached_to(qp->context).view.get(Operation::query_qp));
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  return query(qp, &attr, IBV_QP_CAP, &init) == 0 && init.sq_sig_all != 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad) {
  const Attached& attached = attached_to(qp->context);
  return watch_of(attached).post_send(qp, requests, bad,
                                      {attached.original_transfers.post_send, find_segment, signals_all});
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  const Attached& attached = attached_to(cq->context);
  return watch_of(attached).poll(cq, count, completions, attached.original_transfers.poll_cq);
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const Attached& attached = attached_to(qp->context);
  const int error = attached.original_transfers.modify_qp(qp, attr, mask);
  if (error == 0 && (mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_RESET) watch_of(attached).emptied(qp);
  return error;
}

int destroy_qp(ibv_qp* qp) {
  const Attached& attached = attached_to(qp->context);
  // This comes before the device frees the number, which another queue pair may get.
  watch_of(attached).emptied(qp);
  return attached.original_transfers.destroy_qp(qp);
}

}  // namespace

const TransferOperations kTransferOperations = {post_send, poll_cq, modify_qp, destroy_qp};

}  // namespace dapple::provider
