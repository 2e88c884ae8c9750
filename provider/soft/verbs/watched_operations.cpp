// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/watched_operations.hpp"

#include <type_traits>
#include <utility>

#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/sanitizers/announced_peers.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {
namespace {

const Operations* inner;

template <typename Shown>
void stored(Shown* shown) {
  Sanitizer::of_program()->stored(shown, sizeof *shown);
}

// Marks new objects as defined.
void stored(ibv_pd* pd) {
  stored(ours<Pd>(pd));
}
void stored(ibv_td* td) {
  stored(ours<Td>(td));
}
void stored(ibv_dm* dm) {
  stored(ours<Dm>(dm));
}
void stored(ibv_mr* mr) {
  stored(ours<Mr>(mr));
}
void stored(ibv_mw* mw) {
  stored(ours<Mw>(mw));
}
void stored(ibv_cq* cq) {
  stored(ours<Cq>(cq));
}
void stored(ibv_cq_ex* cq) {
  stored(ours<Cq>(cq));
}
void stored(ibv_srq* srq) {
  stored(ours<Srq>(srq));
}
void stored(ibv_xrcd* xrcd) {
  stored(ours<Xrcd>(xrcd));
}
void stored(ibv_qp* qp) {
  stored(ours<Qp>(qp));
}
void stored(ibv_counters* counters) {
  stored(ours<Counters>(counters));
}
void stored(ibv_flow* flow) {
  stored(ours<Flow>(flow));
}
void stored(provider::CompletionCounter* counter) {
  stored(ours<CountedCompletions>(counter));
}
void stored(provider::DmaHandle* handle) {
  stored(ours<DmaHandle>(handle));
}
void stored(ibv_wq* wq) {
  stored(ours<Wq>(wq));
}
void stored(ibv_rwq_ind_table* table) {
  stored(ours<RwqTable>(table));
}
void stored(ibv_ah* ah) {
  stored(ours<Ah>(ah));
}

// Marks the memory that a call fills in beside its result.
template <typename... Arguments>
void fill_in(bool, Arguments...) {}
void fill_in(bool good, ibv_pd*, ibv_qp_init_attr* attr) {
  if (good) stored(&attr->cap);
}
void fill_in(bool good, ibv_context*, ibv_qp_init_attr_ex* attr) {
  if (good) stored(&attr->cap);
}
void fill_in(bool good, ibv_context*, ibv_srq_init_attr_ex* attr) {
  if (good) stored(&attr->attr);
}
void fill_in(bool good, ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr, size_t size) {
  if (good) Sanitizer::of_program()->stored(attr, size);
}
void fill_in(bool good, ibv_context*, uint8_t, ibv_port_attr* attr) {
  if (good) stored(attr);
}
void fill_in(bool good, ibv_qp*, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  if (!good) return;
  stored(attr);
  stored(init);
}
void fill_in(bool good, ibv_srq*, ibv_srq_attr* attr) {
  if (good) stored(attr);
}
void fill_in(bool good, ibv_qp*, ibv_ece* ece) {
  if (good) stored(ece);
}
void fill_in(bool good, ibv_context*, ibv_values_ex* values) {
  if (good) stored(values);
}
void fill_in(bool good, ibv_srq*, uint32_t* number) {
  if (good) stored(number);
}
void fill_in(bool good, ibv_context*, uint32_t, uint64_t* speed) {
  if (good) stored(speed);
}
void fill_in(bool good, ibv_counters*, uint64_t* values, uint32_t count, uint32_t) {
  if (good) Sanitizer::of_program()->stored(values, count * sizeof(*values));
}
void fill_in(bool good, ibv_context*, provider::CompletionCounterCaps* caps, size_t size) {
  if (good) Sanitizer::of_program()->stored(caps, size);
}
void fill_in(bool good, provider::CompletionCounter*, uint64_t* value) {
  if (good) stored(value);
}
void fill_in(bool good, ibv_qp*, ibv_send_wr*, ibv_send_wr** bad) {
  if (!good) stored(bad);
}
void fill_in(bool good, ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad) {
  if (!good) stored(bad);
}
void fill_in(bool good, ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad) {
  if (!good) stored(bad);
}
void fill_in(bool good, ibv_srq*, ibv_ops_wr* operations, ibv_ops_wr** bad) {
  const ibv_ops_wr* end = good ? nullptr : *bad;
  for (ibv_ops_wr* wr = operations; wr != end; wr = wr->next) {
    if (wr->opcode == IBV_WR_TAG_ADD) stored(&wr->tm.handle);
  }
  if (!good) stored(bad);
}

void hand_over(int polled, ibv_cq*, int, ibv_wc* completions) {
  for (int i = 0; i < polled; ++i) stored(&completions[i]);
}
template <typename... Arguments>
void hand_over(int error, Arguments... arguments) {
  fill_in(error == 0, arguments...);
}
template <typename Made, typename... Arguments>
void hand_over(Made* made, Arguments... arguments) {
  if (made != nullptr) stored(made);
  fill_in(made != nullptr, arguments...);
}

// A program that waits for a completion tells its peers nothing.
template <typename... Arguments>
void tell(Arguments...) {
  if (AnnouncedPeers* peers = AnnouncedPeers::get()) peers->told();
}
void tell(ibv_cq*, int, ibv_wc*) {}
void tell(ibv_cq*, int) {}

template <auto kMember, typename Function = FunctionOf<kMember>>
struct WatchedVerb;

template <auto kMember, typename Result, typename... Arguments>
struct WatchedVerb<kMember, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const InsidePlugin inside;
    tell(arguments...);
    const Result result = (inner->*kMember)(arguments...);
    hand_over(result, arguments...);
    return result;
  }
};

// libibverbs has filled in the event, and the sanitizer has not seen this.
void async_event(ibv_context*, ibv_async_event* event) {
  stored(event);
}

}  // namespace

const Operations& watched_operations(const Operations& operations) {
  static const Operations table = [&] {
    inner = &operations;
    Operations made = operations;
#define DAPPLE_WATCHED(name) made.name = WatchedVerb<&Operations::name>::call;
    DAPPLE_PLANNED_VERBS(DAPPLE_WATCHED)
#undef DAPPLE_WATCHED
    made.reg_mr_ex = WatchedVerb<&Operations::reg_mr_ex>::call;
    made.async_event = async_event;
    return made;
  }();
  return table;
}

}  // namespace dapple::soft
