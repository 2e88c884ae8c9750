// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/requests/explained_operations.hpp"

#include <errno.h>

#include <type_traits>

#include "provider/common/host_guards.hpp"
#include "provider/soft/explain/noted_objects.hpp"
#include "provider/soft/explain/object_names.hpp"
#include "provider/soft/explain/refused_calls.hpp"
#include "provider/soft/explain/requests/failed_requests.hpp"
#include "provider/soft/explain/requests/stray_messages.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/refusals/refusal.hpp"

namespace dapple::soft::explain {
namespace {

constinit const Operations* inner = nullptr;

// The error of a call; 0 if it has succeeded.
template <auto kMember>
int error_of(int result) {
  return kReturnsNumber<kMember> ? (result < 0 ? -result : 0) : result;
}
template <auto>
int error_of(const void* result) {
  return result == nullptr ? errno : 0;
}

// Apart from calls that succeed, which then need no room for texts. `known`: the address that Holders knows.
template <typename Object>
[[gnu::cold, gnu::noinline]] void report(const char* verb, Object* object, int error, const void* known) {
  const ErrnoGuard keep;
  report_refused_call(verb, name_of(object), error, known);
}

template <auto kMember, typename Function = FunctionOf<kMember>>
struct Explained;

template <auto kMember, typename Result, typename Object, typename... Arguments>
struct Explained<kMember, Result (*)(Object*, Arguments...)> {
  static constexpr bool kPolls = std::is_same_v<FunctionOf<kMember>, provider::PollCq>;

  template <const char* kVerb>
  static Result call(Object* object, Arguments... arguments) {
    if constexpr (!kPolls) forget_refusal();
    const Result result = (inner->*kMember)(object, arguments...);
    const int error = error_of<kMember>(result);
    if (error != 0) [[unlikely]]
      report(kVerb, object, error, object);
    if constexpr (std::is_pointer_v<Result>) {
      if (error == 0) note_made(result);
    }
    return result;
  }
  // The verb destroys the object.
  template <const char* kVerb>
  static Result end(Object* object) {
    const Result result = call<kVerb>(object);
    if (result == 0) note_end(object);
    return result;
  }
};

bool is_failure(ibv_wc_status status) {
  return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

void report_failures(ibv_cq* cq, int polled, const ibv_wc* completions) {
  for (int i = 0; i < polled; i++) {
    const ibv_wc& each = completions[i];
    if (is_failure(each.status)) [[unlikely]]
      report_failed_request(cq, each.qp_num, (each.opcode & IBV_WC_RECV) != 0, each.wr_id, each.status);
  }
}

template <const char* kVerb>
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  const int polled = Explained<&Operations::poll_cq>::call<kVerb>(cq, count, completions);
  report_failures(cq, polled, completions);
  return polled;
}

int polled(ibv_cq_ex* cq, const char* verb, int error) {
  if (error == 0 && is_failure(cq->status)) [[unlikely]] {
    report_failed_request(ibv_cq_ex_to_cq(cq), cq->read_qp_num(cq), (cq->read_opcode(cq) & IBV_WC_RECV) != 0, cq->wr_id,
                          cq->status);
  } else if (error != 0 && error != ENOENT) {
    report(verb, ibv_cq_ex_to_cq(cq), error, cq);
  }
  return error;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  return polled(cq, "ibv_start_poll", ours<Cq>(cq)->below_explain.start_poll(cq, attr));
}

int next_poll(ibv_cq_ex* cq) {
  return polled(cq, "ibv_next_poll", ours<Cq>(cq)->below_explain.next_poll(cq));
}

template <const char* kVerb>
ibv_cq* create_cq(ibv_context* context, int size, ibv_comp_channel* channel, int vector) {
  ibv_cq* cq = Explained<&Operations::create_cq>::call<kVerb>(context, size, channel, vector);
  if (cq != nullptr) note_made(cq, "made by ibv_create_cq", channel);
  return cq;
}

template <const char* kVerb>
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* cq = Explained<&Operations::create_cq_ex>::call<kVerb>(context, attr);
  if (cq != nullptr) {
    note_made(ibv_cq_ex_to_cq(cq), "made by ibv_create_cq_ex", attr->channel);
    ours<Cq>(cq)->below_explain = {cq->start_poll, cq->next_poll};
    cq->start_poll = start_poll;
    cq->next_poll = next_poll;
  }
  return cq;
}

PostsBelow& below(ibv_qp_ex* qp) {
  return ours<Qp>(&qp->qp_base)->extended->below_explain;
}

// `bad`: the first request that was not posted; null if all were. The queue pair takes other requests, too, which have
// no address handle.
void explain_datagrams(ibv_qp* qp, const ibv_send_wr* requests, const ibv_send_wr* bad) {
  if (qp->qp_type != IBV_QPT_UD) return;
  for (const ibv_send_wr* wr = requests; wr != bad; wr = wr->next) {
    if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
      explain_datagram(*ours<Qp>(qp), ours<Ah>(wr->wr.ud.ah)->address, wr->wr.ud.remote_qpn);
  }
}

template <const char* kVerb>
int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad) {
  const int error = Explained<&Operations::post_send>::call<kVerb>(qp, requests, bad);
  explain_datagrams(qp, requests, error == 0 ? nullptr : *bad);
  return error;
}

void explain_datagrams(const Qp& qp, const ExtendedPost& post) {
  if (qp.init.qp_type != IBV_QPT_UD || post.error != 0) return;
  for (uint32_t i = 0; i < post.count; i++) {
    const roce::SendRequest& request = post.requests[i]->send;
    explain_datagram(qp, request.address, request.remote_qpn);
  }
}

int wr_complete(ibv_qp_ex* qp) {
  // Between wr_start() and wr_complete() only this thread uses the requests.
  explain_datagrams(*ours<Qp>(&qp->qp_base), *ours<Qp>(&qp->qp_base)->extended);
  const int error = below(qp).wr_complete(qp);
  if (error != 0) [[unlikely]]
    report("ibv_wr_complete", &qp->qp_base, error, qp);
  return error;
}

// The setters between the two may refuse.
void wr_start(ibv_qp_ex* qp) {
  forget_refusal();
  below(qp).wr_start(qp);
}

template <const char* kVerb>
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  ibv_qp* qp = Explained<&Operations::create_qp_ex>::call<kVerb>(context, attr);
  if (qp != nullptr && ours<Qp>(qp)->extended != nullptr) {
    ibv_qp_ex& extended = ours<Qp>(qp)->abi.qp_ex;
    below(&extended) = {extended.wr_start, extended.wr_complete};
    extended.wr_start = wr_start;
    extended.wr_complete = wr_complete;
  }
  return qp;
}

// Those of the device memory, the same for all of a process.
constinit decltype(ibv_dm::memcpy_to_dm) inner_memcpy_to_dm = nullptr;
constinit decltype(ibv_dm::memcpy_from_dm) inner_memcpy_from_dm = nullptr;

int copied(const char* verb, ibv_dm* dm, int error) {
  if (error != 0) [[unlikely]]
    report_refused_call(verb, name_of(dm), error, dm);
  return error;
}

int memcpy_to_dm(ibv_dm* dm, uint64_t offset, const void* from, size_t length) {
  return copied("ibv_memcpy_to_dm", dm, inner_memcpy_to_dm(dm, offset, from, length));
}

int memcpy_from_dm(void* to, ibv_dm* dm, uint64_t offset, size_t length) {
  return copied("ibv_memcpy_from_dm", dm, inner_memcpy_from_dm(to, dm, offset, length));
}

ibv_dm* with_copies(ibv_dm* dm) {
  if (dm != nullptr) {
    inner_memcpy_to_dm = dm->memcpy_to_dm;
    inner_memcpy_from_dm = dm->memcpy_from_dm;
    dm->memcpy_to_dm = memcpy_to_dm;
    dm->memcpy_from_dm = memcpy_from_dm;
  }
  return dm;
}

template <const char* kVerb>
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  return with_copies(Explained<&Operations::alloc_dm>::call<kVerb>(context, attr));
}

template <const char* kVerb>
ibv_dm* import_dm(ibv_context* context, uint32_t handle) {
  return with_copies(Explained<&Operations::import_dm>::call<kVerb>(context, handle));
}

template <const char* kVerb>
int attach_counter(ibv_qp* qp, provider::CompletionCounter* counter, provider::CompletionCounterAttachAttr* attr) {
  const int error = Explained<&Operations::qp_attach_comp_cntr>::call<kVerb>(qp, counter, attr);
  if (error == 0) note_attached(qp, counter);
  return error;
}

// Functions without a result, which cannot be refused.
template <auto kMember, typename Ibv>
void unimport(Ibv* object) {
  (inner->*kMember)(object);
  note_end(object);
}

#define DAPPLE_VERB_NAME(name) constexpr char k_##name[] = "ibv_" #name;
DAPPLE_PLANNED_VERBS(DAPPLE_VERB_NAME)
DAPPLE_VERB_NAME(reg_mr_ex)
DAPPLE_VERB_NAME(query_rt_values_ex)
#undef DAPPLE_VERB_NAME

}  // namespace

void explain_poll(ibv_cq* cq, int polled, const ibv_wc* completions) {
  if (polled < 0) report(k_poll_cq, cq, -polled, cq);
  report_failures(cq, polled, completions);
}

void explain_receives(ibv_qp* qp, int error) {
  report(k_post_recv, qp, error, qp);
}

void explain_receives(ibv_srq* srq, int error) {
  report(k_post_srq_recv, srq, error, srq);
}

void explain_sends(ibv_qp* qp, const ibv_send_wr* requests, const ibv_send_wr* bad, int error) {
  if (error != 0) report(k_post_send, qp, error, qp);
  explain_datagrams(qp, requests, bad);
}

const Operations& explained_operations(const Operations& operations, bool data_path_explains) {
  static const Operations table = [&] {
    inner = &operations;
    Operations made = operations;
#define DAPPLE_EXPLAINED(name) made.name = Explained<&Operations::name>::call<k_##name>;
    DAPPLE_PLANNED_VERBS(DAPPLE_EXPLAINED)
    DAPPLE_EXPLAINED(reg_mr_ex)
#undef DAPPLE_EXPLAINED
    made.query_rt_values = Explained<&Operations::query_rt_values>::call<k_query_rt_values_ex>;
#define DAPPLE_ENDED(name) made.name = Explained<&Operations::name>::end<k_##name>;
    DAPPLE_ENDED(close_xrcd)
    DAPPLE_ENDED(dealloc_dmah)
    DAPPLE_ENDED(dealloc_mw)
    DAPPLE_ENDED(dealloc_pd)
    DAPPLE_ENDED(dealloc_td)
    DAPPLE_ENDED(dereg_mr)
    DAPPLE_ENDED(destroy_ah)
    DAPPLE_ENDED(destroy_comp_cntr)
    DAPPLE_ENDED(destroy_counters)
    DAPPLE_ENDED(destroy_cq)
    DAPPLE_ENDED(destroy_flow)
    DAPPLE_ENDED(destroy_qp)
    DAPPLE_ENDED(destroy_rwq_ind_table)
    DAPPLE_ENDED(destroy_srq)
    DAPPLE_ENDED(destroy_wq)
    DAPPLE_ENDED(free_dm)
#undef DAPPLE_ENDED
    made.alloc_dm = alloc_dm<k_alloc_dm>;
    made.import_dm = import_dm<k_import_dm>;
    made.unimport_dm = unimport<&Operations::unimport_dm>;
    made.unimport_mr = unimport<&Operations::unimport_mr>;
    made.unimport_pd = unimport<&Operations::unimport_pd>;
    made.create_cq = create_cq<k_create_cq>;
    made.create_cq_ex = create_cq_ex<k_create_cq_ex>;
    made.create_qp_ex = create_qp_ex<k_create_qp_ex>;
    made.poll_cq = poll_cq<k_poll_cq>;
    made.post_send = post_send<k_post_send>;
    if (data_path_explains) {
      made.poll_cq = operations.poll_cq;
      made.post_recv = operations.post_recv;
      made.post_send = operations.post_send;
      made.post_srq_recv = operations.post_srq_recv;
    }
    made.qp_attach_comp_cntr = attach_counter<k_qp_attach_comp_cntr>;
    return made;
  }();
  return table;
}

}  // namespace dapple::soft::explain
