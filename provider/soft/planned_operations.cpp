// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The operations of a program whose calls fail by plan (DAPPLE_FAULTS): each counts its calls first. Other programs
// have the plain table.
#include <errno.h>

#include <type_traits>
#include <utility>

#include "provider/soft/fault_plan.hpp"
#include "provider/soft/verbs.hpp"

namespace dapple::soft {
namespace {

// A refused list of requests tells its first one.
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

template <auto kMember>
using FunctionOf = std::remove_reference_t<decltype(std::declval<Operations>().*kMember)>;

template <provider::Operation kVerb, auto kMember, typename Function = FunctionOf<kMember>>
struct Planned;

template <provider::Operation kVerb, auto kMember, typename Result, typename... Arguments>
struct Planned<kVerb, kMember, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const int error = fault_plan()->next_call(static_cast<size_t>(kVerb));
    if (error == 0) return (plain_operations().*kMember)(arguments...);
    if constexpr (std::is_pointer_v<Result>) {
      errno = error;
      return nullptr;
    } else {
      blame_first(arguments...);
      return kVerb == provider::Operation::poll_cq ? -error : error;
    }
  }
};

}  // namespace

const Operations& planned_operations() {
  using provider::Operation;
  static const Operations table = [] {
    Operations made = plain_operations();
#define DAPPLE_PLANNED(name) made.name = Planned<Operation::name, &Operations::name>::call;
    DAPPLE_PLANNED_VERBS(DAPPLE_PLANNED)
#undef DAPPLE_PLANNED
    // To a program both are ibv_reg_mr().
    made.reg_mr_ex = Planned<Operation::reg_mr, &Operations::reg_mr_ex>::call;
    return made;
  }();
  return table;
}

}  // namespace dapple::soft
