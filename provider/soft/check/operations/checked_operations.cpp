// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of a program under dapple-run --check: they note the program's calls. Other programs have the plain
// table. The program's sanitizer takes the check for a part of the plug-in: the check copies bytes that a peer, or an
// earlier request, may still change.
#include <initializer_list>

#include "provider/common/host_guards.hpp"
#include "provider/soft/check/loan_findings.hpp"
#include "provider/soft/check/operations/checked_polls.hpp"
#include "provider/soft/check/operations/checked_posts.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/check/operations/checking_completions.hpp"
#include "provider/soft/check/reports/symbols.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/check/tag_entries.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/sanitizers/watched.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::check {
namespace {

Checker& checker() {
  return *Checker::get();
}

const Operations& below() {
  return unchecked_operations();
}

template <typename Object>
Object* noted(Object* object, const char* verb) {
  if (object != nullptr) checker().objects.add(object, verb);
  return object;
}

// Calls destroy(), which returns 0 if the object is gone.
template <typename Destroy>
int forgotten(const void* object, Destroy destroy) {
  const std::optional<ReportedStack> made = checker().objects.remove(object);
  const int error = destroy();
  if (error != 0 && made) checker().objects.add(object, *made);
  return error;
}

ibv_pd* alloc_pd(ibv_context* context) {
  return noted(below().alloc_pd(context), "made by ibv_alloc_pd");
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  return noted(below().alloc_parent_domain(context, attr), "made by ibv_alloc_parent_domain");
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  return noted(below().alloc_td(context, attr), "made by ibv_alloc_td");
}

int dealloc_td(ibv_td* td) {
  return forgotten(td, [&] { return below().dealloc_td(td); });
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  return noted(below().alloc_dm(context, attr), "made by ibv_alloc_dm");
}

int free_dm(ibv_dm* dm) {
  return forgotten(dm, [&] { return below().free_dm(dm); });
}

provider::DmaHandle* alloc_dmah(ibv_context* context, provider::DmaHandleInitAttr* attr) {
  return noted(below().alloc_dmah(context, attr), "made by ibv_alloc_dmah");
}

int dealloc_dmah(provider::DmaHandle* handle) {
  return forgotten(handle, [&] { return below().dealloc_dmah(handle); });
}

provider::CompletionCounter* create_comp_cntr(ibv_context* context, provider::CompletionCounterInitAttr* attr) {
  return noted(below().create_comp_cntr(context, attr), "made by ibv_create_comp_cntr");
}

int destroy_comp_cntr(provider::CompletionCounter* counter) {
  return forgotten(counter, [&] { return below().destroy_comp_cntr(counter); });
}

int qp_attach_comp_cntr(ibv_qp* qp, provider::CompletionCounter* counter, provider::CompletionCounterAttachAttr* attr) {
  const int error = below().qp_attach_comp_cntr(qp, counter, attr);
  if (error == 0) {
    checker().counts.store(true, std::memory_order_relaxed);
    checker().lent.forget_all();
  }
  return error;
}

ibv_pd* import_pd(ibv_context* context, uint32_t handle) {
  return noted(below().import_pd(context, handle), "imported by ibv_import_pd");
}

void unimport_pd(ibv_pd* pd) {
  checker().objects.remove(pd);
  below().unimport_pd(pd);
}

ibv_mr* import_mr(ibv_pd* pd, uint32_t handle) {
  return noted(below().import_mr(pd, handle), "imported by ibv_import_mr");
}

void unimport_mr(ibv_mr* mr) {
  checker().objects.remove(mr);
  below().unimport_mr(mr);
}

ibv_dm* import_dm(ibv_context* context, uint32_t handle) {
  return noted(below().import_dm(context, handle), "imported by ibv_import_dm");
}

void unimport_dm(ibv_dm* dm) {
  checker().objects.remove(dm);
  below().unimport_dm(dm);
}

int dealloc_pd(ibv_pd* pd) {
  return forgotten(pd, [&] { return below().dealloc_pd(pd); });
}

void note_memory(ibv_mr& mr) {
  RegionConfig config;
  MemoryTable* device = &context_of(mr.context)->memory;
  if (checker().freed == nullptr || device->region_config(mr.lkey, config) != 0) return;
  // The program may free memory under on-demand paging. The memory of others is not the program's.
  if (config.kind != RegionKind::kPlain || ours<Mr>(&mr)->dm != nullptr) return;
  checker().freed->add(device, mr.lkey, config.memory, config.length, config.iova);
}

// The accesses until now are no part of what the program does with the memory next.
void forget_accesses(const ibv_mr& mr) {
  RegionConfig config;
  if (checker().races == nullptr || context_of(mr.context)->memory.region_config(mr.lkey, config) != 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(config.memory);
  checker().races->forget({begin, begin + config.length});
}

ibv_mr* note_region(ibv_mr* mr, const char* verb = "made by ibv_reg_mr") {
  if (mr == nullptr) return nullptr;
  checker().mapped.forget();
  forget_accesses(*mr);
  note_memory(*mr);
  checker().keys.add(&context_of(mr->context)->memory, mr->lkey,
                     {.domain = ours<Mr>(mr)->pd->number,
                      .address = mr->addr,
                      .length = mr->length,
                      .registered = here(),
                      .deregistered = std::nullopt});
  return noted(mr, verb);
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return note_region(below().reg_mr(pd, address, length, iova, access));
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  return note_region(below().alloc_null_mr(pd), "made by ibv_alloc_null_mr");
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t length, unsigned access) {
  return note_region(below().reg_dm_mr(pd, dm, offset, length, access), "made by ibv_reg_dm_mr");
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
  return note_region(below().reg_dmabuf_mr(pd, offset, length, iova, fd, access), "made by ibv_reg_dmabuf_mr");
}

ibv_mr* reg_mr_ex(ibv_pd* pd, provider::RegionInitAttr* attr) {
  return note_region(below().reg_mr_ex(pd, attr));
}

int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  checker().withheld.yield_key(mr->lkey);
  const int error = below().rereg_mr(mr, flags, pd, address, length, access);
  if (error == 0) {
    checker().objects.remove(mr);
    // libibverbs does this after the call.
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
      report_if_lent(checker(), *mr, "reregistered");
      checker().lent.forget_key(mr->lkey);
      mr->addr = address;
      mr->length = length;
    }
    note_region(mr);
  }
  return error;
}

int dereg_mr(ibv_mr* mr) {
  const MemoryTable* device = &context_of(mr->context)->memory;
  const uint32_t key = mr->lkey;
  FreedMarks* freed = checker().freed;
  const uint64_t number = freed == nullptr ? 0 : freed->number_of(device, key);
  report_if_lent(checker(), *mr, "deregistered");
  forget_accesses(*mr);
  checker().withheld.yield_key(key);
  checker().keys.remove(device, key);
  const int error = forgotten(mr, [&] { return below().dereg_mr(mr); });
  if (error != 0) {
    checker().keys.restore(device, key);
    return error;
  }
  checker().lent.forget_key(key);
  if (freed != nullptr) freed->remove(device, key, number);
  return 0;
}

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector) {
  ibv_cq* cq = noted(below().create_cq(context, cqe, channel, vector), "made by ibv_create_cq");
  if (cq != nullptr) checker().asked.add(ours<Cq>(cq), static_cast<size_t>(cqe));
  return cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const uint32_t asked = attr->cqe;
  ibv_cq_ex* cq = noted(below().create_cq_ex(context, attr), "made by ibv_create_cq_ex");
  if (cq == nullptr) return nullptr;
  checker().asked.add(ours<Cq>(cq), asked);
  watch_polls(*ours<Cq>(cq));
  return cq;
}

int resize_cq(ibv_cq* cq, int cqe) {
  const int error = below().resize_cq(cq, cqe);
  if (error == 0) checker().asked.add(ours<Cq>(cq), static_cast<size_t>(cqe));
  return error;
}

int destroy_cq(ibv_cq* cq) {
  const int error = forgotten(cq, [&] { return below().destroy_cq(cq); });
  if (error != 0) return error;
  checker().loads.forget(cq);
  checker().asked.remove(cq);
  return 0;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const uint32_t asked = attr->attr.max_wr;
  ibv_srq* srq = noted(below().create_srq(pd, attr), "made by ibv_create_srq");
  if (srq != nullptr) checker().asked.add(&ours<Srq>(srq)->queue, asked);
  return srq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const uint32_t asked = attr->attr.max_wr;
  ibv_srq* srq = noted(below().create_srq_ex(context, attr), "made by ibv_create_srq_ex");
  if (srq == nullptr) return nullptr;
  Srq& made = *ours<Srq>(srq);
  checker().asked.add(&made.queue, asked);
  if (made.tags != nullptr) made.tags->watch = std::make_unique<TagEntries>(checker(), made.tags->list);
  if (made.xrc.cq == nullptr) return srq;
  checker().loads.add(made.xrc.cq, &made.queue, asked);
  made.xrc.traced = std::make_unique<ForeignReceives>(checker(), made);
  made.xrc.completions = made.xrc.traced.get();
  return srq;
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  return noted(below().open_xrcd(context, attr), "opened by ibv_open_xrcd");
}

int close_xrcd(ibv_xrcd* xrcd) {
  return forgotten(xrcd, [&] { return below().close_xrcd(xrcd); });
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  const uint32_t asked = attr->max_wr;
  const int error = below().modify_srq(srq, attr, mask);
  if (error == 0 && (mask & IBV_SRQ_MAX_WR) != 0) checker().asked.add(&ours<Srq>(srq)->queue, asked);
  return error;
}

int destroy_srq(ibv_srq* srq) {
  const void* queue = &ours<Srq>(srq)->queue;
  const Cq* cq = ours<Srq>(srq)->xrc.cq;
  const void* list = ours<Srq>(srq)->tags == nullptr ? nullptr : &ours<Srq>(srq)->tags->list;
  const int error = forgotten(srq, [&] { return below().destroy_srq(srq); });
  if (error != 0) return error;
  for (const void* ended : {queue, list}) {
    if (ended == nullptr) continue;
    checker().receives.forget(ended);
    checker().contexts.end(ended);
    checker().withheld.end(ended);
  }
  checker().asked.remove(queue);
  if (cq != nullptr) checker().loads.remove(cq, queue);
  return 0;
}

// The queues of a queue pair, and their completion queues.
struct Queues {
  const void* sends;
  const void* receives;
  const Cq* sent;
  const Cq* received;
};

Queues queues_of(const Qp& qp) {
  return {&qp, qp.srq == nullptr ? &qp.own_receives : &qp.srq->queue, qp.send_cq, qp.recv_cq};
}

void report_load(const Qp& qp, const Cq& cq) {
  if (cq.queue.ignores_overruns()) return;
  const size_t size = checker().asked.depth(&cq, cq.queue.size());
  const std::optional<uint64_t> load = checker().loads.excess(&cq, size);
  if (!load) return;
  std::vector<ReportedStack> places;
  for (const void* object : {static_cast<const void*>(&cq), static_cast<const void*>(&qp)}) {
    if (const std::optional<ReportedStack> made = checker().objects.made(object)) places.push_back(*made);
  }
  checker().reporter.show(
      {.level = Level::kNote,
       .kind = "cq-may-overrun",
       .text = format("The program has asked for a completion queue of %s with room for %zu completions, and with "
                      "queue pair 0x%x for queues with room for %llu requests that use it.",
                      cq.context->ibv->device->name, size, qp.qpn, static_cast<unsigned long long>(*load)),
       .remedy =
           "Make the completion queue as large as the queues together, or never have more requests outstanding than it "
           "has room for.",
       .places = places});
}

// `asked`: the room before the call of `verb`, which writes down what it has granted.
ibv_qp* note_queues(ibv_qp* pair, const char* verb, const ibv_qp_cap& asked) {
  if (noted(pair, verb) == nullptr) return nullptr;
  const Qp& qp = *ours<Qp>(pair);
  // The receiving end of XRC has neither queue.
  if (qp.xrc != nullptr) return pair;
  const Queues queues = queues_of(qp);
  checker().asked.add(queues.sends, asked.max_send_wr);
  if (qp.srq == nullptr) checker().asked.add(queues.receives, asked.max_recv_wr);
  checker().loads.add(queues.sent, queues.sends, asked.max_send_wr);
  checker().loads.add(queues.received, queues.receives,
                      // The sending end of XRC has no receives.
                      pair->qp_type == IBV_QPT_XRC_SEND ? 0
                      : qp.srq == nullptr               ? asked.max_recv_wr
                                          : checker().asked.depth(queues.receives, qp.srq->queue.depth()));
  checker().receives.attach(queues.receives, qp.state);
  if (const void* list = list_of(qp)) checker().receives.attach(list, qp.state);
  report_load(qp, *queues.sent);
  report_load(qp, *queues.received);
  return pair;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const ibv_qp_cap asked = attr->cap;
  return note_queues(below().create_qp(pd, attr), "made by ibv_create_qp", asked);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const ibv_qp_cap asked = attr->cap;
  ibv_qp* qp = below().create_qp_ex(context, attr);
  if (qp != nullptr && ours<Qp>(qp)->extended != nullptr) {
    ibv_qp_ex& extended = ours<Qp>(qp)->abi.qp_ex;
    ours<Qp>(qp)->layers.checked->wr_complete = extended.wr_complete;
    extended.wr_complete = watched<wr_complete>();
  }
  return note_queues(qp, "made by ibv_create_qp_ex", asked);
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  return noted(below().open_qp(context, attr), "opened by ibv_open_qp");
}

// In RESET the device forgets all requests. In SQE it has flushed the send queue, and RTS follows.
void meet_peer(Context& context, uint32_t peer) {
  Slot slot;
  if (checker().races == nullptr || !context.slot(slot)) return;
  checker().races->open(slot.counters_file, slot.number);
  checker().races->meet(peer);
}

int modify_qp(ibv_qp* ibv, ibv_qp_attr* attr, int mask) {
  Qp& qp = *ours<Qp>(ibv);
  const roce::QpState before = qp.state.load(std::memory_order_acquire);
  if ((mask & IBV_QP_DEST_QPN) != 0) meet_peer(*qp.context, attr->dest_qp_num);
  const int error = below().modify_qp(ibv, attr, mask);
  if (error == 0 && (mask & IBV_QP_AV) != 0) report_if_hopless(checker(), *ibv->context, attr->ah_attr);
  if (error == 0 && (mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC)) != 0)
    qp.layers.checked->has_rdma_cms_rights.store(called_by_rdma_cm(here()), std::memory_order_relaxed);
  if (error != 0 || (mask & IBV_QP_STATE) == 0) return error;
  checker().disconnections.forget(qp.qpn);
  checker().lent.forget(qp.qpn);
  if (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR) {
    checker().withheld.end(qp.qpn, queues_of(qp).receives);
    if (const void* list = list_of(qp)) checker().withheld.end(qp.qpn, list);
    checker().contexts.end(qp.qpn);
  }
  if (attr->qp_state == IBV_QPS_RESET) {
    checker().receives.forget(&qp.own_receives);
    checker().told.remove(qp.qpn);
    qp.layers.checked->events.forget_unready();
  }
  const bool leaves_sqe = before == roce::QpState::kSqe && attr->qp_state == IBV_QPS_RTS;
  if (attr->qp_state == IBV_QPS_RESET || leaves_sqe) qp.layers.checked->sends.clear();
  return 0;
}

int destroy_qp(ibv_qp* ibv) {
  Qp& qp = *ours<Qp>(ibv);
  // A child of fork() has only a copy of its parent's queue pair.
  if (qp.context->generation == ForkGeneration::now()) report_end(checker(), qp);
  const void* queue = &qp.own_receives;
  const Queues queues = queues_of(qp);
  const uint32_t qpn = qp.qpn;
  checker().writes.forget(&qp);
  checker().disconnections.forget(qp.qpn);
  checker().lent.forget(qp.qpn);
  const void* list = list_of(qp);
  checker().receives.detach(queues.receives, qp.state);
  if (list != nullptr) checker().receives.detach(list, qp.state);
  const int error = forgotten(ibv, [&] { return below().destroy_qp(ibv); });
  if (error != 0) {
    checker().receives.attach(queues.receives, qp.state);
    if (list != nullptr) checker().receives.attach(list, qp.state);
    return error;
  }
  checker().withheld.end(qpn, queues.receives);
  if (list != nullptr) checker().withheld.end(qpn, list);
  checker().contexts.end(qpn);
  checker().told.remove(qpn);
  checker().receives.forget(queue);
  checker().asked.remove(queue);
  checker().asked.remove(queues.sends);
  checker().loads.remove(queues.sent, queues.sends);
  checker().loads.remove(queues.received, queues.receives);
  return 0;
}

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
  return noted(below().create_flow(qp, attr), "made by ibv_create_flow");
}

int destroy_flow(ibv_flow* flow) {
  return forgotten(flow, [&] { return below().destroy_flow(flow); });
}

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attr) {
  return noted(below().create_counters(context, attr), "made by ibv_create_counters");
}

int destroy_counters(ibv_counters* counters) {
  return forgotten(counters, [&] { return below().destroy_counters(counters); });
}

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr) {
  const uint32_t asked = attr->max_wr;
  ibv_wq* wq = noted(below().create_wq(context, attr), "made by ibv_create_wq");
  if (wq == nullptr) return nullptr;
  const Qp& qp = ours<Wq>(wq)->qp;
  checker().asked.add(&qp.own_receives, asked);
  checker().loads.add(qp.recv_cq, &qp.own_receives, asked);
  checker().receives.attach(&qp.own_receives, qp.state);
  report_load(qp, *qp.recv_cq);
  return wq;
}

int modify_wq(ibv_wq* wq, ibv_wq_attr* attr) {
  const int error = below().modify_wq(wq, attr);
  if (error != 0 || (attr->attr_mask & IBV_WQ_ATTR_STATE) == 0 || attr->wq_state == IBV_WQS_RDY) return error;
  const Qp& qp = ours<Wq>(wq)->qp;
  checker().withheld.end(qp.qpn, &qp.own_receives);
  checker().contexts.end(&qp.own_receives);
  if (attr->wq_state == IBV_WQS_RESET) checker().receives.forget(&qp.own_receives);
  return 0;
}

int destroy_wq(ibv_wq* wq) {
  const Qp& qp = ours<Wq>(wq)->qp;
  const void* queue = &qp.own_receives;
  const std::atomic<roce::QpState>& state = qp.state;
  const Cq* cq = qp.recv_cq;
  const uint32_t qpn = qp.qpn;
  checker().receives.detach(queue, state);
  const int error = forgotten(wq, [&] { return below().destroy_wq(wq); });
  if (error != 0) {
    checker().receives.attach(queue, state);
    return error;
  }
  checker().withheld.end(qpn, queue);
  checker().contexts.end(queue);
  checker().receives.forget(queue);
  checker().asked.remove(queue);
  checker().loads.remove(cq, queue);
  return 0;
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr) {
  return noted(below().create_rwq_ind_table(context, attr), "made by ibv_create_rwq_ind_table");
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  return forgotten(table, [&] { return below().destroy_rwq_ind_table(table); });
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return noted(below().alloc_mw(pd, type), "made by ibv_alloc_mw");
}

int dealloc_mw(ibv_mw* mw) {
  const MemoryTable* device = &context_of(mw->context)->memory;
  const uint32_t key = mw->rkey;
  const ReportedStack call = {"deallocated by ibv_dealloc_mw", here()};
  const int error = forgotten(mw, [&] { return below().dealloc_mw(mw); });
  if (error == 0) checker().keys.end_window(device, key, {"which ibv_dealloc_mw() has ended", call});
  return error;
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  ibv_ah* address = noted(below().create_ah(pd, attr), "made by ibv_create_ah");
  if (address != nullptr) report_if_hopless(checker(), *pd->context, *attr);
  return address;
}

int destroy_ah(ibv_ah* ah) {
  report_if_addressed(checker(), ah);
  return forgotten(ah, [&] { return below().destroy_ah(ah); });
}

}  // namespace

const Operations& checked_operations() {
  static const Operations table = [] {
    Operations made = below();
    made.alloc_dm = watched<alloc_dm>();
    made.alloc_dmah = watched<alloc_dmah>();
    made.alloc_mw = watched<alloc_mw>();
    made.alloc_null_mr = watched<alloc_null_mr>();
    made.alloc_parent_domain = watched<alloc_parent_domain>();
    made.alloc_pd = watched<alloc_pd>();
    made.alloc_td = watched<alloc_td>();
    made.bind_mw = watched<bind_mw>();
    made.close_xrcd = watched<close_xrcd>();
    made.create_ah = watched<create_ah>();
    made.create_comp_cntr = watched<create_comp_cntr>();
    made.create_counters = watched<create_counters>();
    made.create_cq = watched<create_cq>();
    made.create_cq_ex = watched<create_cq_ex>();
    made.create_flow = watched<create_flow>();
    made.create_qp = watched<create_qp>();
    made.create_qp_ex = watched<create_qp_ex>();
    made.create_rwq_ind_table = watched<create_rwq_ind_table>();
    made.create_srq = watched<create_srq>();
    made.create_srq_ex = watched<create_srq_ex>();
    made.create_wq = watched<create_wq>();
    made.dealloc_dmah = watched<dealloc_dmah>();
    made.dealloc_mw = watched<dealloc_mw>();
    made.dealloc_pd = watched<dealloc_pd>();
    made.dealloc_td = watched<dealloc_td>();
    made.dereg_mr = watched<dereg_mr>();
    made.destroy_ah = watched<destroy_ah>();
    made.destroy_comp_cntr = watched<destroy_comp_cntr>();
    made.destroy_counters = watched<destroy_counters>();
    made.destroy_cq = watched<destroy_cq>();
    made.destroy_flow = watched<destroy_flow>();
    made.destroy_qp = watched<destroy_qp>();
    made.destroy_rwq_ind_table = watched<destroy_rwq_ind_table>();
    made.destroy_srq = watched<destroy_srq>();
    made.destroy_wq = watched<destroy_wq>();
    made.free_dm = watched<free_dm>();
    made.import_dm = watched<import_dm>();
    made.import_mr = watched<import_mr>();
    made.import_pd = watched<import_pd>();
    made.modify_qp = watched<modify_qp>();
    made.modify_srq = watched<modify_srq>();
    made.modify_wq = watched<modify_wq>();
    made.open_qp = watched<open_qp>();
    made.open_xrcd = watched<open_xrcd>();
    made.poll_cq = watched<poll_cq>();
    made.post_recv = watched<post_recv>();
    made.post_send = watched<post_send>();
    made.post_srq_ops = watched<post_srq_ops>();
    made.post_srq_recv = watched<post_srq_recv>();
    made.qp_attach_comp_cntr = watched<qp_attach_comp_cntr>();
    made.reg_dm_mr = watched<reg_dm_mr>();
    made.reg_dmabuf_mr = watched<reg_dmabuf_mr>();
    made.reg_mr = watched<reg_mr>();
    made.reg_mr_ex = watched<reg_mr_ex>();
    made.rereg_mr = watched<rereg_mr>();
    made.resize_cq = watched<resize_cq>();
    made.unimport_dm = watched<unimport_dm>();
    made.unimport_mr = watched<unimport_mr>();
    made.unimport_pd = watched<unimport_pd>();
    return made;
  }();
  return table;
}

}  // namespace dapple::soft::check
