// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions of the plug-in that libdapple finds: provider/common/check_calls.hpp.
#include "provider/common/check_calls.hpp"

#include <type_traits>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/watched_heap.hpp"
#include "provider/soft/explain/last_refusal.hpp"
#include "provider/soft/explain/refused_calls.hpp"

namespace dapple::soft::check {
namespace {

void show(const provider::CheckFinding& finding, void (*before_halt)()) {
  Checker::get()->reporter.show({.level = Level::kError,
                                 .kind = finding.kind,
                                 .text = finding.text,
                                 .remedy = finding.remedy,
                                 .places = {finding.places, finding.places + finding.num_places}},
                                before_halt);
}

}  // namespace
}  // namespace dapple::soft::check

extern "C" [[gnu::visibility("default")]] dapple::provider::ShowFinding dapple_find_show_finding() {
  return dapple::soft::check::Checker::get() == nullptr ? nullptr : dapple::soft::check::show;
}

extern "C" [[gnu::visibility("default")]] void dapple_mark_memory(const void* memory, size_t size, bool is_free) {
  if (is_free) {
    dapple::soft::check::mark_free(memory, size);
  } else {
    dapple::soft::check::mark_used(memory, size);
  }
}

static_assert(std::is_same_v<decltype(&dapple_mark_memory), dapple::provider::MarkMemory>);
static_assert(std::is_same_v<decltype(&dapple_find_show_finding), dapple::provider::FindShowFinding>);

extern "C" [[gnu::visibility("default")]] const char* dapple_last_refusal(unsigned& count) {
  return dapple::soft::explain::last_refusal(count);
}

static_assert(std::is_same_v<decltype(&dapple_last_refusal), dapple::provider::LastRefusal>);

extern "C" [[gnu::visibility("default")]] bool dapple_report_failure(const char* text, const char* remedy) {
  return dapple::soft::explain::report_failure(text, remedy);
}

static_assert(std::is_same_v<decltype(&dapple_report_failure), dapple::provider::ReportFailure>);

extern "C" [[gnu::visibility("default")]] bool dapple_note_call(dapple::provider::Stack& stack) {
  if (dapple::soft::check::Checker::get() == nullptr) return false;
  stack = dapple::soft::check::here();
  return true;
}

static_assert(std::is_same_v<decltype(&dapple_note_call), dapple::provider::NoteCall>);

extern "C" [[gnu::visibility("default")]] bool dapple_report_missing_call(const char* text, const char* remedy,
                                                                          const dapple::provider::Stack& after) {
  return dapple::soft::explain::report_missing_call(text, remedy, after);
}

static_assert(std::is_same_v<decltype(&dapple_report_missing_call), dapple::provider::ReportMissingCall>);
