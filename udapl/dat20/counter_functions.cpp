// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/dat20/counter_functions.hpp"

#include <dat2/dat_ib_extensions.h>

#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/dat20/counter_names.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::udapl::functions {
namespace {

static_assert(kIaCounters == DCNT_IA_ALL_COUNTERS && std::size(kIaCounterNames) == kIaCounters);
static_assert(kEpCounters == DCNT_EP_ALL_COUNTERS && std::size(kEpCounterNames) == kEpCounters);
static_assert(kEvdCounters == DCNT_EVD_ALL_COUNTERS && std::size(kEvdCounterNames) == kEvdCounters);
static_assert(int{DCNT_IA_CM} == static_cast<int>(CounterGroup::kConnectionManager) &&
              int{DCNT_IA_LNK} == static_cast<int>(CounterGroup::kLink) &&
              int{DCNT_IA_DIAG} == static_cast<int>(CounterGroup::kDiagnostic));
static_assert(int{DCNT_IA_LMR_FREE} == static_cast<int>(IaCounter::kLmrFree));
static_assert(int{DCNT_IA_PSP_FREE} == static_cast<int>(IaCounter::kPspFree));
static_assert(int{DCNT_IA_EP_FREE} == static_cast<int>(IaCounter::kEpFree));
static_assert(int{DCNT_IA_SP_CR_REJECTED} == static_cast<int>(IaCounter::kRequestRejected));
static_assert(int{DCNT_IA_ASYNC_CQ_ERROR} == static_cast<int>(IaCounter::kAsyncCqError));
static_assert(int{DCNT_IA_CM_LISTEN} == static_cast<int>(IaCounter::kListen));
static_assert(int{DCNT_IA_CM_PASSIVE_EST} == static_cast<int>(IaCounter::kPassiveEst));
static_assert(int{DCNT_IA_CM_DREQ_RX} == static_cast<int>(IaCounter::kDreqRx));
static_assert(int{DCNT_IA_RMR_FREE} == static_cast<int>(IaCounter::kRmrFree));
static_assert(int{DCNT_IA_SRQ_FREE} == static_cast<int>(IaCounter::kSrqFree));
static_assert(int{DCNT_IA_CM_AH_RESOLVED} == static_cast<int>(IaCounter::kAhResolved));
static_assert(int{DCNT_IA_CM_ERR_TIMEOUT} == static_cast<int>(IaCounter::kErrTimeout));
static_assert(int{DCNT_IA_CM_ERR_REJ_RX} == static_cast<int>(IaCounter::kErrRejRx));
static_assert(int{DCNT_EP_POST_SEND} == static_cast<int>(EpCounter::kPostSend));
static_assert(int{DCNT_EP_POST_RECV} == static_cast<int>(EpCounter::kPostRecv));
static_assert(int{DCNT_EP_POST_WRITE_IMM} == static_cast<int>(EpCounter::kPostWriteImm));
static_assert(int{DCNT_EP_POST_READ} == static_cast<int>(EpCounter::kPostRead));
static_assert(int{DCNT_EP_RECV} == static_cast<int>(EpCounter::kRecv));
static_assert(int{DCNT_EP_POST_SEND_UD} == static_cast<int>(EpCounter::kPostSendUd));
static_assert(int{DCNT_EP_POST_CMP_SWAP} == static_cast<int>(EpCounter::kPostCompareAndSwap));
static_assert(int{DCNT_EP_POST_FETCH_ADD} == static_cast<int>(EpCounter::kPostFetchAndAdd));
static_assert(int{DCNT_EP_RECV_UD} == static_cast<int>(EpCounter::kRecvUd));
static_assert(int{DCNT_EVD_WAIT_NOTIFY} == static_cast<int>(EvdCounter::kWaitNotify));
static_assert(int{DCNT_EVD_DEQUEUE_POLL_FOUND} == static_cast<int>(EvdCounter::kPollFound));
static_assert(int{DCNT_EVD_DTO_CALLBACK} == static_cast<int>(EvdCounter::kDtoCallback));
static_assert(int{DCNT_EP_RECV_RDMA_IMM} == static_cast<int>(EpCounter::kRecvRdmaImm));

// The counters of an object of one kind, their values at the last reset, and their names.
template <class Set, size_t Size>
struct Counted {
  const Set& counters;
  CounterBases<Size>& bases;
  const char* const (&names)[Size];
  PortCounters* port = nullptr;

  uint64_t at(size_t i) const { return counters.at(i) - bases[i] + (port ? port->at(i) : 0); }
  void reset(size_t i) const {
    bases[i] = counters.at(i);
    if (port) port->reset(i);
  }
};

// Calls visit(name, value) for one counter, or for all if the number is the end of the list.
template <class Set, size_t Size, class Visit>
DAT_RETURN visit_counters(const Counted<Set, Size>& of, int number, bool reset, Visit visit) {
  const int all = static_cast<int>(Size);
  if (number < 0 || number > all) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  const int last = number == all ? all - 1 : number;
  for (int i = number == all ? 0 : number; i <= last; ++i) {
    const auto at = static_cast<size_t>(i);
    visit(of.names[at], of.at(at), number == all);
    if (reset) of.reset(at);
  }
  return kSuccess;
}

template <class Visit>
DAT_RETURN visit_object(DAT_HANDLE handle, int number, bool reset, Visit visit) {
  return controlled([&] {
    if (auto* ia = object_of<Ia>(handle)) {
      return visit_counters(Counted<IaCounterSet, kIaCounters>{ia->counters(), ia->counter_bases(), kIaCounterNames,
                                                               &ia->port_counters()},
                            number, reset, visit);
    }
    if (auto* ep = object_of<Ep>(handle)) {
      return visit_counters(Counted<EpCounterSet, kEpCounters>{ep->counters(), ep->counter_bases(), kEpCounterNames},
                            number, reset, visit);
    }
    if (auto* evd = object_of<Evd>(handle)) {
      return visit_counters(
          Counted<EvdCounterSet, kEvdCounters>{evd->counters(), evd->counter_bases(), kEvdCounterNames}, number, reset,
          visit);
    }
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
  });
}

// Calls change(counters, group) on an IA and one of its groups.
template <class Change>
DAT_RETURN change_group(DAT_HANDLE handle, int type, Change change) {
  auto* ia = object_of<Ia>(handle);
  if (!ia) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (type < 0 || type >= static_cast<int>(kCounterGroups)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return controlled([&] {
    change(ia->port_counters(), static_cast<CounterGroup>(type));
    return kSuccess;
  });
}

}  // namespace

DAT_RETURN query_counters(DAT_HANDLE handle, va_list args) {
  const int number = va_arg(args, int);
  auto* out = va_arg(args, DAT_UINT64*);
  const bool reset = va_arg(args, int) != 0;
  if (!out) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  return visit_object(handle, number, reset, [&out](const char*, uint64_t value, bool) { *out++ = value; });
}

DAT_RETURN print_counters(DAT_HANDLE handle, va_list args) {
  const int number = va_arg(args, int);
  const bool reset = va_arg(args, int) != 0;
  return visit_object(handle, number, reset, [](const char* name, uint64_t value, bool all) {
    if (value != 0 || !all) std::printf("%s: %" PRIu64 "\n", name, value);
  });
}

DAT_RETURN start_counters(DAT_HANDLE handle, va_list args) {
  return change_group(handle, va_arg(args, int),
                      [](PortCounters& counters, CounterGroup group) { counters.start(group); });
}

DAT_RETURN stop_counters(DAT_HANDLE handle, va_list args) {
  return change_group(handle, va_arg(args, int),
                      [](PortCounters& counters, CounterGroup group) { counters.stop(group); });
}

}  // namespace dapple::udapl::functions
