// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/cm_failures.hpp"

#include <dlfcn.h>
#include <errno.h>

#include <string>
#include <string_view>

#include "provider/common/cm_calls.hpp"
#include "provider/common/cm_refusals.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/member/cm_voice.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/explain/cm_causes.hpp"
#include "provider/soft/explain/last_refusal.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/explain/refused_calls.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft::explain {
namespace {

using check::Level;

bool is_failure(uint32_t event) {
  return name_of_failure(event) != nullptr;
}

// A status is an errno below 0, or a number of the IBTA.
std::string status_words(int status) {
  return status < 0 ? "-" + error_words(-status) : std::to_string(status);
}

// A right program may get these from its network, from other programs, or from a peer that ends the connection first.
Level level_of(std::string_view function, int error, std::string_view reason) {
  switch (error) {
    case EISCONN:
      return Level::kNote;
    case EACCES:
    case EADDRINUSE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENODEV:
    case ENOMEM:
      return Level::kWarning;
    case EADDRNOTAVAIL:
      // The id has not joined the group that it leaves.
      return function == "rdma_leave_multicast" ? Level::kError : Level::kWarning;
    case EINVAL: {
      const bool may_be_over = function == "rdma_disconnect" || reason.starts_with(provider::kConnectionMayBeOver);
      return may_be_over ? Level::kWarning : Level::kError;
    }
    default:
      // A name that is not resolved is the user's mistake rather than the program's.
      return error < 0 ? Level::kWarning : Level::kError;
  }
}

void report_refused(const char* function, int error, const char* reason, bool is_planned) {
  const ErrnoGuard keep;
  if (process_reporter() == nullptr) return;
  report_failed_call(is_planned ? Level::kNote : level_of(function, error, reason), std::string(function) + "()", error,
                     explanation_of(reason, "See rdma_cm(7)."), {{"called", check::Stack::here()}});
}

unsigned reported() {
  unsigned count = 0;
  last_refusal(count);
  return count;
}

void report_failed_function(const char* function, int error, const char* reason) {
  const ErrnoGuard keep;
  if (process_reporter() == nullptr) return;
  report_failed_call(level_of(function, error, reason), std::string(function) + "()", error,
                     explanation_of(reason, "See rdma_cm(7)."), {{"called", check::Stack::here()}});
}

void report_without_qp(const char* function) {
  const std::string text =
      std::string(function) +
      "() is called for an id that has no queue pair, and qp_num is 0: the peer connects to nothing.";
  report_missing_call(
      text.c_str(), "Call rdma_create_qp() before, or give rdma_conn_param the qp_num of the program's own queue pair.",
      check::Stack::here());
}

void note_disconnection(const void* qp) {
  const ErrnoGuard keep;
  if (check::Checker* checker = check::Checker::get()) check::note_disconnection(*checker, qp);
}

void report_failed(const CmFailure& failure) {
  const ErrnoGuard keep;
  check::Reporter* reporter = process_reporter();
  if (reporter == nullptr) return;
  const Cause cause = cause_of(failure);
  const std::string text =
      std::string(name_of_failure(failure.event)) + " (status " + status_words(failure.status) + "): " + cause.clause;
  remember_refusal(text);
  reporter->show({.level = cause.level,
                  .kind = "failed-connection",
                  .text = text,
                  .remedy = cause.remedy,
                  .places = {{"the event was got", check::Stack::here()}}});
}

}  // namespace

void explain_cm() {
  const provider::Settings& settings = provider::settings();
  if (doors() == nullptr || (settings.check_records == nullptr && !provider::is_on(settings.explain))) return;
  static constexpr CmVoice kVoice = {report_refused, is_failure, report_failed};
  doors()->explain_cm(kVoice);
  // Null without the preloaded library.
  auto* calls = static_cast<provider::CmCalls*>(dlsym(RTLD_DEFAULT, provider::kCmCalls));
  static constexpr provider::CmCallWatcher kWatcher = {reported, report_failed_function, report_without_qp,
                                                       note_disconnection};
  if (calls != nullptr) calls->watcher.store(&kWatcher, std::memory_order_release);
}

}  // namespace dapple::soft::explain
