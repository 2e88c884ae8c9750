// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/refused_calls.hpp"

#include <errno.h>

#include <initializer_list>

#include "provider/common/host_guards.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/explain/holders.hpp"
#include "provider/soft/explain/last_refusal.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/system/errno_names.hpp"

namespace dapple::soft::explain {
namespace {

using check::Level;

// Programs try whether the device has a feature, or how much memory it gets: such an answer is no mistake. A full queue
// may be the program's way to limit itself.
Level level_of(std::string_view verb, int error, bool is_planned) {
  if (is_planned || error == EOPNOTSUPP) return Level::kNote;
  if (error == ENOMEM || error == EAGAIN) return Level::kWarning;
  for (const std::string_view making : {"ibv_create_", "ibv_alloc_", "ibv_reg_", "ibv_query_"}) {
    if (verb.starts_with(making)) return Level::kWarning;
  }
  return Level::kError;
}

// Those that use the object.
void add_holders(const void* object, Explanation& explanation, std::vector<check::ReportedStack>& places) {
  size_t all = 0;
  const std::vector<Holders::Holder> holders = Holders::get().of(object, all);
  for (size_t i = 0; i < holders.size(); i++) {
    explanation.reason += (i == 0 ? " It is used by " : ", ") + holders[i].name;
    places.push_back(holders[i].made);
  }
  if (all > holders.size()) explanation.reason += ", and " + std::to_string(all - holders.size()) + " others";
  if (all != 0) explanation.reason += ".";
}

}  // namespace

Explanation explanation_of(std::string_view text, const char* remedy) {
  const size_t end = text.find('\n');
  return {std::string(text.substr(0, end)), std::string(end == text.npos ? remedy : text.substr(end + 1))};
}

std::string error_words(int error) {
  const std::string_view name = errno_name(error);
  return name.empty() ? "the error " + std::to_string(error) : std::string(name);
}

void report_failed_call(Level level, const std::string& call, int error, const Explanation& explanation,
                        const std::vector<check::ReportedStack>& places) {
  const std::string text = call + " fails with " + error_words(error) + ": " + explanation.reason;
  remember_refusal(text);
  process_reporter()->show(
      {.level = level, .kind = "refused-call", .text = text, .remedy = explanation.remedy, .places = places});
}

void report_busy(const char* call, const void* object, Explanation explanation) {
  const ErrnoGuard keep;
  if (process_reporter() == nullptr) return;
  std::vector<check::ReportedStack> places = {{"called", check::here()}};
  add_holders(object, explanation, places);
  report_failed_call(Level::kError, call, EBUSY, explanation, places);
}

bool report_failure(const char* text, const char* remedy) {
  const ErrnoGuard keep;
  if (process_reporter() == nullptr) return false;
  remember_refusal(text);
  process_reporter()->show({.level = Level::kError,
                            .kind = "refused-call",
                            .text = text,
                            .remedy = remedy,
                            .places = {{"called", check::here()}}});
  return true;
}

bool report_missing_call(const char* text, const char* remedy, const check::Stack& after) {
  const ErrnoGuard keep;
  if (check::Checker::get() == nullptr) return false;
  process_reporter()->show({.level = Level::kWarning,
                            .kind = "missing-call",
                            .text = text,
                            .remedy = remedy,
                            .places = {{"called", after}, {"found", check::here()}}});
  return true;
}

void report_refused_call(const char* verb, const std::string& name, int error, const void* object) {
  const ErrnoGuard keep;
  const Refusal& kept = refusal();
  constexpr const char* kNoReason = "the device has kept no reason.\nReport this as a defect of dapple.";
  Explanation explanation = explanation_of(kept.error == error ? kept.text : kNoReason, "");
  std::vector<check::ReportedStack> places = {{"called", check::Stack::here()}};
  if (error == EBUSY) add_holders(object, explanation, places);
  report_failed_call(level_of(verb, error, kept.is_planned), std::string(verb) + "() for " + name, error, explanation,
                     places);
}

}  // namespace dapple::soft::explain
