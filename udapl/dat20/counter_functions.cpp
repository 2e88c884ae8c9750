// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/dat20/counter_functions.hpp"

#include <dat2/dat_ib_extensions.h>

#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/counter_names.hpp"
#include "udapl/dat20/handles.hpp"

namespace dapple::dat20 {
namespace {

using dat::EpCounter;
using dat::IaCounter;

static_assert(dat::kIaCounters == DCNT_IA_ALL_COUNTERS && std::size(kIaCounterNames) == dat::kIaCounters);
static_assert(dat::kEpCounters == DCNT_EP_ALL_COUNTERS && std::size(kEpCounterNames) == dat::kEpCounters);
static_assert(int{DCNT_IA_LMR_FREE} == static_cast<int>(IaCounter::kLmrFree));
static_assert(int{DCNT_IA_PSP_FREE} == static_cast<int>(IaCounter::kPspFree));
static_assert(int{DCNT_IA_EP_FREE} == static_cast<int>(IaCounter::kEpFree));
static_assert(int{DCNT_IA_SP_CR_REJECTED} == static_cast<int>(IaCounter::kRequestRejected));
static_assert(int{DCNT_IA_ASYNC_CQ_ERROR} == static_cast<int>(IaCounter::kAsyncCqError));
static_assert(int{DCNT_IA_CM_LISTEN} == static_cast<int>(IaCounter::kListen));
static_assert(int{DCNT_IA_CM_PASSIVE_EST} == static_cast<int>(IaCounter::kPassiveEst));
static_assert(int{DCNT_IA_CM_DREQ_RX} == static_cast<int>(IaCounter::kDreqRx));
static_assert(int{DCNT_IA_CM_ERR_TIMEOUT} == static_cast<int>(IaCounter::kErrTimeout));
static_assert(int{DCNT_IA_CM_ERR_REJ_RX} == static_cast<int>(IaCounter::kErrRejRx));
static_assert(int{DCNT_EP_POST_SEND} == static_cast<int>(EpCounter::kPostSend));
static_assert(int{DCNT_EP_POST_RECV} == static_cast<int>(EpCounter::kPostRecv));
static_assert(int{DCNT_EP_POST_WRITE_IMM} == static_cast<int>(EpCounter::kPostWriteImm));
static_assert(int{DCNT_EP_POST_READ} == static_cast<int>(EpCounter::kPostRead));
static_assert(int{DCNT_EP_RECV} == static_cast<int>(EpCounter::kRecv));
static_assert(int{DCNT_EP_RECV_RDMA_IMM} == static_cast<int>(EpCounter::kRecvRdmaImm));

// Calls visit(index, value) for one counter, or for all when the number is that of the end of the list.
template <class Set, class Visit>
DAT_RETURN visit_counters(Set& counters, int number, bool reset, Visit visit) {
  const int all = static_cast<int>(counters.size());
  if (number < 0 || number > all) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  const int first = number == all ? 0 : number;
  const int last = number == all ? all - 1 : number;
  for (int i = first; i <= last; ++i) {
    visit(i, counters.at(static_cast<size_t>(i)));
    if (reset) counters.reset(static_cast<size_t>(i));
  }
  return kSuccess;
}

template <class Visit>
DAT_RETURN visit_object(DAT_HANDLE handle, int number, bool reset, Visit visit) {
  std::lock_guard guard(dat::control_mutex());
  if (auto* ia = self<dat::Ia>(handle)) {
    return visit_counters(ia->counters(), number, reset,
                          [&](int i, uint64_t value) { visit(kIaCounterNames[i], value); });
  }
  if (auto* ep = self<dat::Ep>(handle)) {
    return visit_counters(ep->counters(), number, reset,
                          [&](int i, uint64_t value) { visit(kEpCounterNames[i], value); });
  }
  if (self<dat::Evd>(handle)) return error(DAT_NOT_IMPLEMENTED);
  return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}

}  // namespace

DAT_RETURN query_counters(DAT_HANDLE handle, va_list args) {
  const int number = va_arg(args, int);
  auto* out = va_arg(args, DAT_UINT64*);
  const bool reset = va_arg(args, int) != 0;
  if (!out) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return visit_object(handle, number, reset, [&out](const char*, uint64_t value) { *out++ = value; });
}

DAT_RETURN print_counters(DAT_HANDLE handle, va_list args) {
  const int number = va_arg(args, int);
  const bool reset = va_arg(args, int) != 0;
  const bool all = number == int{DCNT_IA_ALL_COUNTERS} || number == int{DCNT_EP_ALL_COUNTERS};
  return visit_object(handle, number, reset, [all](const char* name, uint64_t value) {
    if (value != 0 || !all) std::printf("%s: %" PRIu64 "\n", name, value);
  });
}

}  // namespace dapple::dat20
