// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/last_refusal.hpp"

#include <infiniband/dappledv_failure.h>

#include <atomic>
#include <new>

#include "provider/common/check_calls.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/libdapple/plugin.hpp"

namespace dapple::provider {

namespace {

// Libraries call some functions often. The plug-in stays once it is loaded. Null without it.
template <typename Function>
Function found_once(std::atomic<Function>& found, const char* name) {
  Function function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<Function>(find_in_plugin(name));
    found.store(function, std::memory_order_relaxed);
  }
  return function;
}

}  // namespace

static_assert(sizeof(Stack) <= sizeof(dappledv_call));
static_assert(alignof(Stack) <= alignof(dappledv_call));

const char* last_refusal(unsigned* count) {
  const ErrnoGuard keep;
  static constinit std::atomic<LastRefusal> found = nullptr;
  const LastRefusal function = found_once(found, kLastRefusal);
  unsigned failures = 0;
  const char* line = function == nullptr ? nullptr : function(failures);
  if (count != nullptr) *count = failures;
  return line;
}

bool report_failure(const char* text, const char* remedy) {
  const ErrnoGuard keep;
  const auto report = reinterpret_cast<ReportFailure>(find_in_plugin(kReportFailure));
  return report != nullptr && report(text, remedy);
}

bool note_call(dappledv_call& call) {
  const ErrnoGuard keep;
  static constinit std::atomic<NoteCall> found = nullptr;
  const NoteCall note = found_once(found, kNoteCall);
  Stack stack;
  if (note == nullptr || !note(stack)) return false;
  new (call.opaque) Stack(stack);
  return true;
}

bool report_missing_call(const char* text, const char* remedy, const dappledv_call& after) {
  const ErrnoGuard keep;
  const auto report = reinterpret_cast<ReportMissingCall>(find_in_plugin(kReportMissingCall));
  return report != nullptr && report(text, remedy, *std::launder(reinterpret_cast<const Stack*>(after.opaque)));
}

}  // namespace dapple::provider
