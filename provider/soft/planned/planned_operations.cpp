// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of a program whose calls fail by plan (DAPPLE_FAULTS): each counts its calls first. Other programs
// have the plain table.
#include <errno.h>
#include <time.h>

#include <type_traits>
#include <utility>

#include "provider/soft/faults/disturbances.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/refusals/refusal.hpp"

namespace dapple::soft {
namespace {

// Reports the first request of a refused list as the bad one.
template <typename... Arguments>
void blame_first(Arguments...) {}
void blame_first(ibv_qp*, ibv_send_wr* requests, ibv_send_wr** bad) {
  *bad = requests;
}
void blame_first(ibv_qp*, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  *bad = requests;
}
void blame_first(ibv_srq*, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  *bad = requests;
}
void blame_first(ibv_srq*, ibv_ops_wr* operations, ibv_ops_wr** bad) {
  *bad = operations;
}

template <provider::Operation kVerb, auto kMember, typename Function = FunctionOf<kMember>>
struct Planned;

template <provider::Operation kVerb, auto kMember, typename Result, typename... Arguments>
struct Planned<kVerb, kMember, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const int error = fault_plan()->next_call(static_cast<size_t>(kVerb));
    if (error == 0) return (plain_operations().*kMember)(arguments...);
    refuse_by_plan(error);
    if constexpr (std::is_pointer_v<Result>) {
      errno = error;
      return nullptr;
    } else {
      blame_first(arguments...);
      return kReturnsNumber<kMember> ? -error : error;
    }
  }
};

using PlannedReg = Planned<provider::Operation::reg_mr, &Operations::reg_mr>;
using PlannedRegEx = Planned<provider::Operation::reg_mr, &Operations::reg_mr_ex>;
using PlannedRegDmabuf = Planned<provider::Operation::reg_dmabuf_mr, &Operations::reg_dmabuf_mr>;
using PlannedRereg = Planned<provider::Operation::rereg_mr, &Operations::rereg_mr>;
using PlannedDereg = Planned<provider::Operation::dereg_mr, &Operations::dereg_mr>;

// `make` registers `size` bytes, if the plan has room for them.
template <typename Make>
ibv_mr* limited(uint64_t size, Make make) {
  if (!fault_plan()->register_bytes(size)) {
    errno = refuse_by_plan(ENOMEM);
    return nullptr;
  }
  ibv_mr* mr = make();
  if (mr == nullptr) fault_plan()->unregister_bytes(size);
  return mr;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return limited(length, [=] { return PlannedReg::call(pd, address, length, iova, access); });
}

ibv_mr* reg_mr_ex(ibv_pd* pd, provider::RegionInitAttr* attr) {
  return limited(attr->length, [=] { return PlannedRegEx::call(pd, attr); });
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int file, int access) {
  return limited(length, [=] { return PlannedRegDmabuf::call(pd, offset, length, iova, file, access); });
}

// Memory of the program's, which the functions above have counted. Null regions and device memory are none.
uint64_t counted_bytes(const ibv_mr& shown, const Mr& mr) {
  return mr.dm != nullptr || mr.abi.type == abi::kMrTypeNull ? 0 : shown.length;
}

int dereg_mr(ibv_mr* mr) {
  const uint64_t size = counted_bytes(*mr, *ours<Mr>(mr));
  const int error = PlannedDereg::call(mr);
  if (error == 0) fault_plan()->unregister_bytes(size);
  return error;
}

int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const uint64_t before = moves ? mr->length : 0, after = moves ? length : 0;
  if (!fault_plan()->register_bytes(after)) return errno = refuse_by_plan(ENOMEM);
  const int error = PlannedRereg::call(mr, flags, pd, address, length, access);
  if (error != 0) errno = error;
  fault_plan()->unregister_bytes(error == 0 ? before : after);
  return error;
}

// A program that polls an empty queue, arms it and sleeps loses the event of a completion that comes between the two:
// lets one come. The background thread works meanwhile, since no thread polls.
int req_notify_cq(ibv_cq* cq, int solicited_only) {
  constexpr uint64_t kLook = 50'000;  // nanoseconds
  const CompletionQueue& queue = ours<Cq>(cq)->queue;
  for (uint64_t waited = 0; waited < fault_plan()->arm_delay_ns() && queue.empty(); waited += kLook) {
    constexpr timespec kWait = {0, kLook};
    nanosleep(&kWait, nullptr);
    if (!queue.empty()) note_disturbance(Disturbance::kArmed);
  }
  return Planned<provider::Operation::req_notify_cq, &Operations::req_notify_cq>::call(cq, solicited_only);
}

}  // namespace

const Operations& planned_operations() {
  using provider::Operation;
  static const Operations table = [] {
    Operations made = plain_operations();
#define DAPPLE_PLANNED(name) made.name = Planned<Operation::name, &Operations::name>::call;
    DAPPLE_PLANNED_VERBS(DAPPLE_PLANNED)
#undef DAPPLE_PLANNED
    // To a program the first two are ibv_reg_mr().
    made.reg_mr = reg_mr;
    made.reg_mr_ex = reg_mr_ex;
    made.reg_dmabuf_mr = reg_dmabuf_mr;
    made.dereg_mr = dereg_mr;
    made.rereg_mr = rereg_mr;
    if (fault_plan()->arm_delay_ns() != 0) made.req_notify_cq = req_notify_cq;
    return made;
  }();
  return table;
}

}  // namespace dapple::soft
