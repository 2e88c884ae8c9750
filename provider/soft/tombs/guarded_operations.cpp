// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tombs/guarded_operations.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <optional>
#include <type_traits>
#include <utility>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/explain/malformed_posts.hpp"
#include "provider/soft/explain/object_names.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/tombs/dead_calls.hpp"
#include "provider/soft/tombs/ended_ids.hpp"
#include "provider/soft/tombs/tombs.hpp"

namespace dapple::soft::tombs {
namespace {

constinit const Operations* inner = nullptr;

// Whether the object, or the device that it belongs to, has ended.
template <typename Object>
bool has_ended(Object* object, const char* verb) {
  if (object == nullptr || !Tombs::any()) return false;
  if (Tombs::get().report_if_ended(object, verb)) return true;
  if constexpr (requires { object->context->device; }) return Tombs::get().report_if_ended(object->context, verb);
  return false;
}

// Whether an object in the arguments has ended. The first one is the object of the verb.
template <typename Object, typename... Arguments>
bool any_ended(const char* verb, Object* object, Arguments...) {
  return has_ended(object, verb);
}
bool any_ended(const char* verb, ibv_pd* pd, ibv_qp_init_attr* attr) {
  return has_ended(pd, verb) || has_ended(attr->send_cq, verb) || has_ended(attr->recv_cq, verb) ||
         has_ended(attr->srq, verb);
}
bool any_ended(const char* verb, ibv_context*, ibv_qp_init_attr_ex* attr) {
  const bool has_domain = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0;
  const bool has_xrcd = (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0;
  if (attr->qp_type == IBV_QPT_XRC_RECV) return has_xrcd && has_ended(attr->xrcd, verb);
  const bool has_table = (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) != 0;
  return (has_domain && has_ended(attr->pd, verb)) || has_ended(attr->send_cq, verb) ||
         has_ended(attr->recv_cq, verb) || has_ended(attr->srq, verb) ||
         (has_table && has_ended(attr->rwq_ind_tbl, verb));
}
bool any_ended(const char* verb, ibv_context*, int, ibv_comp_channel* channel, int) {
  return has_ended(channel, verb);
}
bool any_ended(const char* verb, ibv_context*, ibv_cq_init_attr_ex* attr) {
  return has_ended(attr->channel, verb) ||
         ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && has_ended(attr->parent_domain, verb));
}
bool any_ended(const char* verb, ibv_context*, ibv_wq_init_attr* attr) {
  return has_ended(attr->pd, verb) || has_ended(attr->cq, verb);
}
bool any_ended(const char* verb, ibv_context*, ibv_rwq_ind_table_init_attr* attr) {
  // The logarithm of kMaxTableSize. The device refuses a larger table without a look at its entries.
  constexpr uint32_t kLargest = 11;
  if (attr->log_ind_tbl_size > kLargest) return false;
  ibv_wq** const end = attr->ind_tbl + (size_t{1} << attr->log_ind_tbl_size);
  return std::any_of(attr->ind_tbl, end, [verb](ibv_wq* wq) { return has_ended(wq, verb); });
}
bool any_ended(const char* verb, ibv_counters* counters, ibv_counter_attach_attr*, ibv_flow* flow) {
  return has_ended(counters, verb) || has_ended(flow, verb);
}
bool any_ended(const char* verb, ibv_context*, ibv_srq_init_attr_ex* attr) {
  const auto has = [attr](uint32_t member) { return (attr->comp_mask & member) != 0; };
  return (has(IBV_SRQ_INIT_ATTR_PD) && has_ended(attr->pd, verb)) ||
         (has(IBV_SRQ_INIT_ATTR_XRCD) && has_ended(attr->xrcd, verb)) ||
         (has(IBV_SRQ_INIT_ATTR_CQ) && has_ended(attr->cq, verb));
}
bool any_ended(const char* verb, ibv_context*, ibv_qp_open_attr* attr) {
  return (attr->comp_mask & IBV_QP_OPEN_ATTR_XRCD) != 0 && has_ended(attr->xrcd, verb);
}
bool any_ended(const char* verb, ibv_context*, ibv_parent_domain_init_attr* attr) {
  return has_ended(attr->pd, verb) || has_ended(attr->td, verb);
}
bool any_ended(const char* verb, ibv_mr* mr, int flags, ibv_pd* pd, void*, size_t, int) {
  return has_ended(mr, verb) || ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && has_ended(pd, verb));
}
bool any_ended(const char* verb, ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  return has_ended(qp, verb) || has_ended(mw, verb) || has_ended(bind->bind_info.mr, verb);
}
bool any_ended(const char* verb, ibv_pd* pd, ibv_dm* dm, uint64_t, size_t, unsigned) {
  return has_ended(pd, verb) || has_ended(dm, verb);
}
bool any_ended(const char* verb, ibv_qp* qp, provider::CompletionCounter* counter,
               provider::CompletionCounterAttachAttr*) {
  return has_ended(qp, verb) || has_ended(counter, verb);
}
bool any_ended(const char* verb, ibv_pd* pd, provider::RegionInitAttr* attr) {
  const bool has_handle = (attr->comp_mask & provider::kRegionInitDmaHandle) != 0;
  return has_ended(pd, verb) || (has_handle && has_ended(attr->dmah, verb));
}
bool any_ended(const char* verb, ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr**) {
  if (has_ended(qp, verb)) return true;
  const bool is_ud = qp->qp_type == IBV_QPT_UD;
  for (const ibv_send_wr* wr = requests; wr != nullptr; wr = wr->next) {
    const bool is_send = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
    if (is_ud && is_send && has_ended(wr->wr.ud.ah, verb)) return true;
    if (!is_ud && wr->opcode == IBV_WR_BIND_MW &&
        (has_ended(wr->bind_mw.mw, verb) || has_ended(wr->bind_mw.bind_info.mr, verb)))
      return true;
  }
  return false;
}

// Whether a post has a list of requests without an end, which the layers below would walk for ever, or a null list of
// segments, at which the device would crash.
template <typename... Arguments>
bool is_malformed_post(const char*, Arguments...) {
  return false;
}
template <typename Object, typename Request>
bool is_malformed_post(const char* verb, Object* object, Request* requests, Request** bad) {
  return explain::is_malformed(check::Checker::get()->reporter, verb, object, requests, bad);
}

// The device has taken none of the requests.
template <typename... Arguments>
void tell_bad(Arguments...) {}
template <typename Object, typename Request>
void tell_bad(Object*, Request* requests, Request** bad) {
  *bad = requests;
}

template <typename Result>
Result refused(bool returns_number) {
  errno = EINVAL;
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return returns_number ? -EINVAL : EINVAL;
  }
}

// The part of an object that the program sees.
abi::Qp& shown(ibv_qp* qp) {
  return ours<Qp>(qp)->abi;
}
abi::Cq& shown(ibv_cq* cq) {
  return ours<Cq>(cq)->abi;
}
abi::Srq& shown(ibv_srq* srq) {
  return ours<Srq>(srq)->abi;
}
abi::Mr& shown(ibv_mr* mr) {
  return ours<Mr>(mr)->abi;
}
template <typename Object>
Object& shown(Object* object) {
  return *object;
}

// The functions in objects that have some.
template <typename Shown>
void end_calls_of(Shown&, bool) {}
void end_calls_of(abi::Qp& qp, bool is_extended) {
  if (is_extended) end_calls(qp);
}
void end_calls_of(abi::Cq& cq, bool is_extended) {
  if (is_extended) end_calls(cq);
}
void end_calls_of(ibv_wq& wq, bool) {
  end_calls(wq);
}
void end_calls_of(ibv_dm& dm, bool) {
  end_calls(dm);
}

template <typename Object>
bool is_extended(Object*) {
  return false;
}
bool is_extended(ibv_qp* qp) {
  return ours<Qp>(qp)->extended != nullptr;
}
bool is_extended(ibv_cq* cq) {
  return ours<Cq>(cq)->abi.cq_ex.start_poll != nullptr;
}

// Calls end(), which returns true if the object has ended. Nobody may use the object meanwhile.
template <const char* kVerb, const char* kTitle, typename Object, typename End>
void entomb(Object* object, End end) {
  Tomb tomb = {.name = explain::name_of(object), .verb = kVerb, .places = {{kTitle, check::here()}}};
  if (const std::optional<check::ReportedStack> made = check::Checker::get()->objects.made(object))
    tomb.places.push_back(*made);
  const bool extended = is_extended(object);
  unsigned char before[sizeof shown(object)];
  memcpy(before, &shown(object), sizeof before);
  if (!end()) return;
  // The program and libibverbs may still read what they have seen of the object.
  memcpy(&shown(object), before, sizeof before);
  end_calls_of(shown(object), extended);
  Tombs::get().add(object, std::move(tomb));
}

template <auto kMember, typename Function = FunctionOf<kMember>>
struct Guarded;

template <auto kMember, typename Result, typename Object, typename... Arguments>
struct Guarded<kMember, Result (*)(Object*, Arguments...)> {
  template <const char* kVerb>
  static Result call(Object* object, Arguments... arguments) {
    if (is_malformed_post(kVerb, object, arguments...) || any_ended(kVerb, object, arguments...)) [[unlikely]] {
      tell_bad(object, arguments...);
      return refused<Result>(kReturnsNumber<kMember>);
    }
    return (inner->*kMember)(object, arguments...);
  }
  // The verb destroys the object.
  template <const char* kVerb, const char* kTitle>
  static Result end(Object* object) {
    if (has_ended(object, kVerb)) [[unlikely]]
      return refused<Result>(false);
    Result result;
    entomb<kVerb, kTitle>(object, [&] { return (result = (inner->*kMember)(object)) == 0; });
    return result;
  }
};

// The verb ends an import.
template <auto kMember, typename Function = FunctionOf<kMember>>
struct Unimported;

template <auto kMember, typename Object>
struct Unimported<kMember, void (*)(Object*)> {
  template <typename Ours, const char* kVerb, const char* kTitle>
  static void end(Object* object) {
    if (has_ended(object, kVerb)) [[unlikely]]
      return;
    entomb<kVerb, kTitle>(object, [&] {
      const bool is_import = ours<Ours>(object)->importing.original != nullptr;
      (inner->*kMember)(object);
      return is_import;
    });
  }
};

// The functions of extended queue pairs that get other objects. They are the same for all of a process.
constinit std::atomic<decltype(ibv_qp_ex::wr_set_ud_addr)> inner_set_ud_addr = nullptr;
constinit std::atomic<decltype(ibv_qp_ex::wr_bind_mw)> inner_bind_mw = nullptr;

ExtendedPost& post_of(ibv_qp_ex* qp) {
  return *ours<Qp>(&qp->qp_base)->extended;
}

// Between wr_start() and wr_complete() only this thread uses the requests.
void set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  if (has_ended(ah, "ibv_wr_set_ud_addr")) {
    post_of(qp).names_ended = true;
  } else {
    inner_set_ud_addr.load(std::memory_order_relaxed)(qp, ah, remote_qpn, remote_qkey);
  }
}

void bind_mw(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  if (has_ended(mw, "ibv_wr_bind_mw") || has_ended(info->mr, "ibv_wr_bind_mw")) {
    post_of(qp).names_ended = true;
  } else {
    inner_bind_mw.load(std::memory_order_relaxed)(qp, mw, rkey, info);
  }
}

int wr_complete(ibv_qp_ex* qp) {
  ExtendedPost& post = post_of(qp);
  if (!std::exchange(post.names_ended, false)) return post.complete_below_tombs(qp);
  qp->wr_abort(qp);
  return errno = EINVAL;
}

template <const char* kVerb>
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  ibv_qp* qp = Guarded<&Operations::create_qp_ex>::call<kVerb>(context, attr);
  if (qp == nullptr || ours<Qp>(qp)->extended == nullptr) return qp;
  ibv_qp_ex& extended = ours<Qp>(qp)->abi.qp_ex;
  inner_set_ud_addr.store(extended.wr_set_ud_addr, std::memory_order_relaxed);
  inner_bind_mw.store(extended.wr_bind_mw, std::memory_order_relaxed);
  post_of(&extended).complete_below_tombs = extended.wr_complete;
  extended.wr_set_ud_addr = set_ud_addr;
  extended.wr_bind_mw = bind_mw;
  extended.wr_complete = wr_complete;
  return qp;
}

#define DAPPLE_VERB_NAME(name) constexpr char k_##name[] = "ibv_" #name;
DAPPLE_PLANNED_VERBS(DAPPLE_VERB_NAME)
DAPPLE_VERB_NAME(reg_mr_ex)
DAPPLE_VERB_NAME(query_rt_values_ex)
#undef DAPPLE_VERB_NAME

}  // namespace

const Operations& guarded_operations(const Operations& operations) {
  static const Operations table = [&] {
    assert(inner == nullptr);
    inner = &operations;
    Tombs::get();
    watch_ids();
    Operations made = operations;
#define DAPPLE_GUARDED(name) made.name = Guarded<&Operations::name>::call<k_##name>;
    DAPPLE_PLANNED_VERBS(DAPPLE_GUARDED)
    DAPPLE_GUARDED(reg_mr_ex)
#undef DAPPLE_GUARDED
    made.query_rt_values = Guarded<&Operations::query_rt_values>::call<k_query_rt_values_ex>;
    made.create_qp_ex = create_qp_ex<k_create_qp_ex>;
#define DAPPLE_ENDED(name, how)                                \
  static constexpr char title_##name[] = how " by ibv_" #name; \
  made.name = Guarded<&Operations::name>::end<k_##name, title_##name>;
    DAPPLE_ENDED(close_xrcd, "closed")
    DAPPLE_ENDED(dealloc_dmah, "deallocated")
    DAPPLE_ENDED(dealloc_mw, "deallocated")
    DAPPLE_ENDED(dealloc_pd, "deallocated")
    DAPPLE_ENDED(dealloc_td, "deallocated")
    DAPPLE_ENDED(dereg_mr, "deregistered")
    DAPPLE_ENDED(destroy_ah, "destroyed")
    DAPPLE_ENDED(destroy_comp_cntr, "destroyed")
    DAPPLE_ENDED(destroy_counters, "destroyed")
    DAPPLE_ENDED(destroy_cq, "destroyed")
    DAPPLE_ENDED(destroy_flow, "destroyed")
    DAPPLE_ENDED(destroy_qp, "destroyed")
    DAPPLE_ENDED(destroy_rwq_ind_table, "destroyed")
    DAPPLE_ENDED(destroy_srq, "destroyed")
    DAPPLE_ENDED(destroy_wq, "destroyed")
    DAPPLE_ENDED(free_dm, "freed")
#undef DAPPLE_ENDED
#define DAPPLE_UNIMPORTED(name, Ours)                                \
  static constexpr char k_##name[] = "ibv_" #name;                   \
  static constexpr char title_##name[] = "unimported by ibv_" #name; \
  made.name = Unimported<&Operations::name>::end<Ours, k_##name, title_##name>;
    DAPPLE_UNIMPORTED(unimport_dm, Dm)
    DAPPLE_UNIMPORTED(unimport_mr, Mr)
    DAPPLE_UNIMPORTED(unimport_pd, Pd)
#undef DAPPLE_UNIMPORTED
    return made;
  }();
  return table;
}

}  // namespace dapple::soft::tombs
