// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/fault_plan.hpp"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "provider/common/settings.hpp"
#include "provider/soft/faults/call_site.hpp"
#include "provider/soft/faults/disturbances.hpp"
#include "provider/soft/faults/verbs_names.hpp"

namespace dapple::soft {
namespace {

// The number of an errno, a status or an event.
bool is_result(size_t of, int number) {
  if (of > kEvent || number < 0) return false;
  if (of == kEvent) return event_of(event_name(static_cast<ibv_event_type>(number))) == number;
  if (number == 0) return false;
  if (of == kCompletion) {
    return static_cast<int>(status_of(status_name(static_cast<roce::CompletionStatus>(number)))) == number;
  }
  return number <= kMaxErrno;
}

}  // namespace

bool FaultPlan::add(std::string_view entry) {
  std::string reason;
  return add(entry, reason);
}

bool FaultPlan::add(std::string_view entry, std::string& reason) {
  if (entry.starts_with(kRegistered)) {
    reason = read_registered(entry, most_registered_);
    return reason.empty() && (plans_calls_ = true);
  }
  if (entry.starts_with(kArm)) {
    reason = read_arm(entry, arm_delay_ns_);
    return reason.empty() && (plans_calls_ = true);
  }
  PlannedFault fault;
  reason = read_fault(entry, fault);
  if (!reason.empty()) return false;
  if (count_ == kMax) {
    is_overfull_ = true;
    reason = "more than 64 calls, completions and events are planned";
    return false;
  }
  static_assert(kMax == 64);
  const bool of_completions = is_of_completions(fault.of);
  (of_completions ? plans_completions_ : plans_calls_) = true;
  plans_outages_ |= fault.of == kLink;
  needs_stack_ |= fault.stack != 0 && !of_completions;
  faults_[count_++] = fault;
  return true;
}

bool FaultPlan::set_next(std::string_view name, int result) {
  const size_t of = counted_of(name);
  if (!is_result(of, result)) return false;
  const bool event = of == kEvent;
  next_[of].store(event ? result + 1 : result, std::memory_order_relaxed);
  return true;
}

void FaultPlan::clear_next() {
  for (std::atomic<int>& result : next_) result.store(0, std::memory_order_relaxed);
}

bool FaultPlan::awaits_next(std::string_view name) const {
  const auto awaits = [](const std::atomic<int>& result) { return result.load(std::memory_order_relaxed) != 0; };
  if (name.empty()) return std::any_of(std::begin(next_), std::end(next_), awaits);
  const size_t of = counted_of(name);
  return of <= kEvent && awaits(next_[of]);
}

int FaultPlan::next(size_t of, uint64_t stack) {
  assert(of < std::size(passed_) && count_ <= kMax);
  int result = of <= kEvent ? next_[of].exchange(0, std::memory_order_relaxed) : 0;
  const uint64_t of_all = passed_[of].fetch_add(1, std::memory_order_relaxed) + 1;
  for (size_t i = 0; i < count_; i++) {
    const PlannedFault& fault = faults_[i];
    if (fault.of != of || (fault.stack != 0 && fault.stack != stack)) continue;
    const uint64_t number = fault.stack == 0 ? of_all : passed_there_[i].fetch_add(1, std::memory_order_relaxed) + 1;
    const bool comes = result == 0 && (fault.lasts ? number >= fault.number : number == fault.number);
    if (comes) result = fault.result;
    note_coming(i, number, comes);
  }
  if (result == kDies) kill(getpid(), SIGKILL);
  return result;
}

void FaultPlan::note_coming(size_t fault, uint64_t number, bool came) {
  assert(fault <= kMaxPlannedFaults);
  if (notes_ == nullptr) return;
  FaultComing& coming = notes_->comings[fault];
  uint64_t most = coming.most.load(std::memory_order_relaxed);
  while (most < number && !coming.most.compare_exchange_weak(most, number)) {
  }
  if (came) coming.came.store(1);
}

bool FaultPlan::register_bytes(uint64_t size) {
  const uint64_t all = registered_.fetch_add(size, std::memory_order_relaxed) + size;
  const bool fits = all <= most_registered_;
  if (!fits) unregister_bytes(size);
  note_coming(kMax, fits ? all : all - size, !fits);
  return fits;
}

int FaultPlan::next_call(size_t verb) {
  if (!needs_stack_ && !notes_points_) return next(verb, 0);
  const CallSite site = call_site();
  if (notes_points_) note(verb, site, {});
  return next(verb, site.stack);
}

int FaultPlan::next_call(std::string_view name) {
  const size_t of = counted_of(name);
  return of == SIZE_MAX ? 0 : next_call(of);
}

roce::CompletionStatus FaultPlan::next_completion(roce::CompletionOpcode opcode) {
  CallSite site;
  site.stack = static_cast<uint64_t>(opcode) + 1;
  if (notes_points_) note(kCompletion, site, opcode_name(opcode));
  return static_cast<roce::CompletionStatus>(next(kCompletion, site.stack));
}

bool FaultPlan::next_outage() {
  const int microseconds = next(kLink, 0);
  if (microseconds != 0) last_outage_us_.store(static_cast<uint64_t>(microseconds), std::memory_order_relaxed);
  return microseconds != 0;
}

// Without a free place the call is not noted. A name takes long, so a call gets one only if its place is new. Two
// threads may note one place twice.
void FaultPlan::note(size_t verb, const CallSite& site, std::string_view name) {
  const char* function = counted_name(verb);
  const auto process = static_cast<uint32_t>(getpid());
  for (FaultPoint& point : notes_->points) {
    const PointState state = point.state.load();
    if (state == PointState::kFree) break;
    if (state != PointState::kComplete || point.process != process || point.stack != site.stack) continue;
    if (strcmp(point.verb, function) != 0) continue;
    point.calls.fetch_add(1);
    return;
  }
  char place[sizeof FaultPoint::place] = {};
  name.copy(place, sizeof place - 1);
  if (name.empty()) name_caller(site.caller, place);
  for (FaultPoint& point : notes_->points) {
    PointState state = PointState::kFree;
    if (!point.state.compare_exchange_strong(state, PointState::kTaken)) continue;
    point.process = process;
    point.stack = site.stack;
    point.calls.store(1);
    snprintf(point.program, sizeof point.program, "%s", program_invocation_short_name);
    snprintf(point.verb, sizeof point.verb, "%s", function);
    memcpy(point.place, place, sizeof point.place);
    point.state.store(PointState::kComplete);
    return;
  }
}

namespace {

bool is_for_this_program() {
  const char* name = provider::settings().faults_in;
  return name == nullptr || strcmp(name, program_invocation_short_name) == 0;
}

// Tells whether the program itself plans faults while it runs. Its first device decides.
enum class ProgramsFaults : uint8_t { kUndecided, kNo, kYes };
constinit std::atomic<ProgramsFaults> programs_faults{ProgramsFaults::kUndecided};

// False if it was decided otherwise.
bool decide(ProgramsFaults wanted) {
  ProgramsFaults decided = ProgramsFaults::kUndecided;
  return programs_faults.compare_exchange_strong(decided, wanted) || decided == wanted;
}

void add_all(FaultPlan& plan, std::string_view rest) {
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    plan.add(entry);
    rest.remove_prefix(entry.size() == rest.size() ? rest.size() : entry.size() + 1);
  }
}

}  // namespace

FaultPlan* fault_plan() {
  static FaultPlan* const plan = []() -> FaultPlan* {
    static FaultPlan made;
    if (is_for_this_program()) {
      made.tell(fault_notes());
      const char* text = provider::settings().faults;
      if (text != nullptr) add_all(made, text);
    }
    if (!decide(ProgramsFaults::kNo)) made.expect_next();
    return made.plans_calls() || made.plans_completions() ? &made : nullptr;
  }();
  return plan;
}

int plan_next_fault(const char* name, int result) {
  if (FaultPlan unused; name == nullptr || !unused.set_next(name, result)) return EINVAL;
  if (!decide(ProgramsFaults::kYes)) return EBUSY;
  fault_plan()->set_next(name, result);
  return 0;
}

int clear_next_faults() {
  if (!decide(ProgramsFaults::kYes)) return EBUSY;
  fault_plan()->clear_next();
  return 0;
}

bool awaits_next_fault(const char* name) {
  // A question decides nothing.
  return programs_faults.load() == ProgramsFaults::kYes && fault_plan()->awaits_next(name == nullptr ? "" : name);
}

}  // namespace dapple::soft
