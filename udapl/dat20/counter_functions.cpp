// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/dat20/extensions.hpp"

#include <dat2/dat_ib_extensions.h>

#include <cinttypes>
#include <cstdio>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::udapl::functions {
namespace {

static_assert(kIaCounters == DCNT_IA_ALL_COUNTERS && kEpCounters == DCNT_EP_ALL_COUNTERS &&
              kEvdCounters == DCNT_EVD_ALL_COUNTERS);
#define IA_COUNTER(NAME, DAT) static_assert(int{DCNT_IA_##DAT} == static_cast<int>(IaCounter::NAME));
#define EP_COUNTER(NAME, DAT) static_assert(int{DCNT_EP_##DAT} == static_cast<int>(EpCounter::NAME));
#define EVD_COUNTER(NAME, DAT) static_assert(int{DCNT_EVD_##DAT} == static_cast<int>(EvdCounter::NAME));
#include "udapl/api/counters.def"
static_assert(int{DCNT_IA_CM} == static_cast<int>(CounterGroup::kConnectionManager) &&
              int{DCNT_IA_LNK} == static_cast<int>(CounterGroup::kLink) &&
              int{DCNT_IA_DIAG} == static_cast<int>(CounterGroup::kDiagnostic));

constexpr const char* kIaCounterNames[] = {
#define IA_COUNTER(NAME, DAT) "DCNT_IA_" #DAT,
#include "udapl/api/counters.def"
};
constexpr const char* kEpCounterNames[] = {
#define EP_COUNTER(NAME, DAT) "DCNT_EP_" #DAT,
#include "udapl/api/counters.def"
};
constexpr const char* kEvdCounterNames[] = {
#define EVD_COUNTER(NAME, DAT) "DCNT_EVD_" #DAT,
#include "udapl/api/counters.def"
};

// The counters of an object of one kind, and their names.
template <class Set, size_t Size>
struct Counted {
  Set& counters;
  const char* const (&names)[Size];
  PortCounters* port = nullptr;
  uint64_t at(size_t i) const { return counters.at(i) - counters.base(i) + (port ? port->at(i) : 0); }
  void reset(size_t i) const {
    counters.base(i) = counters.at(i);
    if (port) port->reset(i);
  }
};
template <class Set, size_t Size>
Counted(Set&, const char* const (&)[Size], PortCounters* = nullptr) -> Counted<Set, Size>;

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
    if (auto* ia = object_of<Ia>(handle))
      return visit_counters(Counted{ia->counters(), kIaCounterNames, &ia->port_counters()}, number, reset, visit);
    if (auto* ep = object_of<Ep>(handle))
      return visit_counters(Counted{ep->counters(), kEpCounterNames}, number, reset, visit);
    if (auto* evd = object_of<Evd>(handle))
      return visit_counters(Counted{evd->counters(), kEvdCounterNames}, number, reset, visit);
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
