// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/noted_objects.hpp"

#include <cassert>

#include "provider/soft/explain/holders.hpp"
#include "provider/soft/explain/object_names.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::explain {

// These use no other object.
void note_made(ibv_td*) {}
void note_made(ibv_dm*) {}
void note_made(ibv_counters*) {}
void note_made(provider::CompletionCounter*) {}
void note_made(provider::DmaHandle*) {}
void note_made(ibv_cq*) {}
void note_made(ibv_xrcd*) {}

void note_made(ibv_pd* pd) {
  const Pd& made = *ours<Pd>(pd);
  if (made.below == nullptr || made.importing.original != nullptr) return;
  const ibv_td* td = made.td == nullptr ? nullptr : &made.td->ibv;
  Holders::get().add(pd, name_of(pd), "made by ibv_alloc_parent_domain", {&made.below->ibv, td});
}

void note_made(ibv_cq_ex*) {}

void note_made(ibv_cq* cq, const char* verb, const ibv_comp_channel* channel) {
  const Pd* pd = ours<Cq>(cq)->pd;
  if (pd == nullptr && channel == nullptr) return;
  Holders::get().add(cq, name_of(cq), verb, {channel, pd == nullptr ? nullptr : &pd->ibv});
}

void note_made(ibv_mr* mr) {
  if (ours<Mr>(mr)->importing.original != nullptr) return;
  const Dm* dm = ours<Mr>(mr)->dm;
  const DmaHandle* handle = ours<Mr>(mr)->dma_handle;
  Holders::get().add(mr, name_of(mr), "made by ibv_reg_mr",
                     {mr->pd, dm == nullptr ? nullptr : &dm->ibv, handle == nullptr ? nullptr : &handle->ibv});
}

void note_made(ibv_mw* mw) {
  Holders::get().add(mw, name_of(mw), "made by ibv_alloc_mw", {mw->pd});
}

void note_made(ibv_srq* srq) {
  const XrcQueue& xrc = ours<Srq>(srq)->xrc;
  const ibv_xrcd* xrcd = xrc.xrcd == nullptr ? nullptr : &xrc.xrcd->abi.xrcd;
  const auto& tags = ours<Srq>(srq)->tags;
  const Cq* queue = tags == nullptr ? xrc.cq : &tags->cq;
  const ibv_cq* cq = queue == nullptr ? nullptr : &queue->abi.cq;
  Holders::get().add(srq, name_of(srq), "made by ibv_create_srq", {srq->pd, xrcd, cq});
}

void note_made(ibv_qp* qp) {
  const auto& xrc = ours<Qp>(qp)->xrc;
  const ibv_xrcd* xrcd = xrc == nullptr ? nullptr : &xrc->xrcd.abi.xrcd;
  const auto& raw = ours<Qp>(qp)->raw;
  const ibv_rwq_ind_table* table = raw == nullptr || raw->table == nullptr ? nullptr : &raw->table->ibv;
  Holders::get().add(qp, name_of(qp), "made by ibv_create_qp",
                     {qp->pd, qp->send_cq, qp->recv_cq, qp->srq, xrcd, table});
}

void note_made(ibv_ah* ah) {
  Holders::get().add(ah, name_of(ah), "made by ibv_create_ah", {ah->pd});
}

void note_made(ibv_flow* flow) {
  const FlowEntry& entry = ours<Flow>(flow)->entry;
  assert(entry.qp != nullptr && entry.qp->raw != nullptr);
  Holders::get().add(flow, name_of(flow), "made by ibv_create_flow", {&entry.qp->abi.qp, entry.rule.counters});
}

void note_made(ibv_wq* wq) {
  Holders::get().add(wq, name_of(wq), "made by ibv_create_wq", {wq->pd, wq->cq});
}

void note_made(ibv_rwq_ind_table* table) {
  const RwqTable& made = *ours<RwqTable>(table);
  assert(made.size != 0);
  std::vector<const void*> used;
  for (uint32_t i = 0; i < made.size; i++) used.push_back(&made.queues[i]->ibv);
  Holders::get().add(table, name_of(table), "made by ibv_create_rwq_ind_table", used);
}

void note_attached(ibv_qp* qp, const provider::CompletionCounter* counter) {
  Holders::get().use(qp, counter);
}

void note_end(const void* object) {
  Holders::get().remove(object);
}

}  // namespace dapple::soft::explain
