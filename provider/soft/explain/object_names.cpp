// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/object_names.hpp"

#include "provider/soft/check/reports/report.hpp"

namespace dapple::soft::explain {
namespace {

using check::format;

std::string of_device(const std::string& object, const ibv_context* context) {
  return object + " of " + name_of(context);
}

}  // namespace

std::string name_of(const ibv_context* context) {
  return context->device->name;
}

std::string name_of(const ibv_pd* pd) {
  return of_device(format("the protection domain with the handle %u", pd->handle), pd->context);
}

std::string name_of(const ibv_td* td) {
  return of_device("the thread domain", td->context);
}

std::string name_of(const ibv_dm* dm) {
  return of_device("the device memory", dm->context);
}

std::string name_of(const ibv_mr* mr) {
  return of_device(format("the memory region with the key 0x%x", mr->lkey), mr->context);
}

std::string name_of(const ibv_mw* mw) {
  return of_device(format("the memory window with the key 0x%x", mw->rkey), mw->context);
}

std::string name_of(const ibv_cq* cq) {
  return of_device(format("the completion queue for %d completions", cq->cqe), cq->context);
}

std::string name_of(const ibv_srq* srq) {
  return of_device("the shared receive queue", srq->context);
}

std::string name_of(const ibv_xrcd* xrcd) {
  return of_device("the XRC domain", xrcd->context);
}

std::string name_of(const ibv_qp* qp) {
  return of_device(format("queue pair 0x%x", qp->qp_num), qp->context);
}

std::string name_of(const ibv_ah* ah) {
  return of_device("the address handle", ah->context);
}

std::string name_of(const ibv_counters* counters) {
  return of_device("the counters", counters->context);
}

std::string name_of(const provider::CompletionCounter* counter) {
  return of_device(format("the completion counter with the handle %u", counter->handle), counter->context);
}

std::string name_of(const provider::DmaHandle* handle) {
  return of_device("the DMA handle", handle->context);
}

std::string name_of(const ibv_flow* flow) {
  return of_device(format("the flow with the handle %u", flow->handle), flow->context);
}

std::string name_of(const ibv_wq* wq) {
  return of_device(format("work queue 0x%x", wq->wq_num), wq->context);
}

std::string name_of(const ibv_rwq_ind_table* table) {
  return of_device(format("the indirection table with the handle %d", table->ind_tbl_handle), table->context);
}

}  // namespace dapple::soft::explain
