// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/fault_plan.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "provider/common/settings.hpp"
#include "provider/member/errno_names.hpp"
#include "provider/member/owned_fd.hpp"
#include "provider/soft/faults/call_site.hpp"
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/faults/verbs_names.hpp"

namespace dapple::soft {
namespace {

struct Name {
  std::string_view name;
  int value;
};

constexpr Name kCounted[] = {
#define DAPPLE_NAME(name) {"ibv_" #name, static_cast<int>(provider::Operation::name)},
    DAPPLE_PLANNED_VERBS(DAPPLE_NAME)
#undef DAPPLE_NAME
        {"ibv_open_device", static_cast<int>(kOpenDevice)},
    {"completion", static_cast<int>(kCompletion)},
    {"event", static_cast<int>(kEvent)},
    {"link", static_cast<int>(kLink)},
#define DAPPLE_NAME(name) {"rdma_" #name, static_cast<int>(PlannedCommand::name)},
    DAPPLE_PLANNED_COMMANDS(DAPPLE_NAME)
#undef DAPPLE_NAME
};

const Name* find_counted(std::string_view name) {
  for (const Name& candidate : kCounted) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

// A whole number above 0.
template <typename Number>
bool number_of(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

// The result SIGKILL, in the place of an errno or a status.
constexpr int kDies = -1;

constexpr int kMaxErrno = 4095;  // the kernel's limit

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

int result_of(size_t of, std::string_view text) {
  if (text == "SIGKILL") return kDies;
  // 0 means no event.
  if (of == kEvent) return event_of(text) + 1;
  if (of == kLink) {
    uint64_t nanoseconds = 0;
    return parse_delay(text, nanoseconds) ? static_cast<int>(nanoseconds / 1000) : 0;
  }
  if (of == kCompletion) {
    return static_cast<int>(status_of(text));
  }
  if (const int error = errno_of(text); error != 0) return error;
  int number = 0;
  return number_of(text, number) && number <= kMaxErrno ? number : 0;
}

}  // namespace

bool FaultPlan::add(std::string_view entry) {
  if (constexpr std::string_view kRegistered = "registered="; entry.starts_with(kRegistered)) {
    if (!number_of(entry.substr(kRegistered.size()), most_registered_)) return false;
    return plans_calls_ = true;
  }
  const size_t at = entry.find('@'), equals = entry.find('=');
  if (at == std::string_view::npos || equals == std::string_view::npos || equals < at) return false;
  Fault fault;
  std::string_view name = entry.substr(0, at);
  if (const size_t hash = name.find('#'); hash != std::string_view::npos) {
    if (!number_of(name.substr(hash + 1), fault.stack, 16)) return false;
    name = name.substr(0, hash);
  }
  const Name* what = find_counted(name);
  if (what == nullptr) return false;
  fault.of = static_cast<size_t>(what->value);
  const bool of_completions = fault.of >= kCompletion && fault.of <= kLink;
  if (fault.stack != 0 && (fault.of == kEvent || fault.of == kLink)) return false;
  std::string_view number = entry.substr(at + 1, equals - at - 1);
  fault.lasts = number.ends_with('+');
  if (fault.lasts) number.remove_suffix(1);
  fault.result = result_of(fault.of, entry.substr(equals + 1));
  if (fault.result == 0 || !number_of(number, fault.number)) return false;
  if (count_ == kMax) {
    is_overfull_ = true;
    return false;
  }
  (of_completions ? plans_completions_ : plans_calls_) = true;
  plans_outages_ |= fault.of == kLink;
  needs_stack_ |= fault.stack != 0 && !of_completions;
  faults_[count_++] = fault;
  return true;
}

bool FaultPlan::set_next(std::string_view name, int result) {
  const Name* what = find_counted(name);
  if (what == nullptr || !is_result(static_cast<size_t>(what->value), result)) return false;
  const bool event = what->value == static_cast<int>(kEvent);
  next_[what->value].store(event ? result + 1 : result, std::memory_order_relaxed);
  return true;
}

void FaultPlan::clear_next() {
  for (std::atomic<int>& result : next_) result.store(0, std::memory_order_relaxed);
}

int FaultPlan::next(size_t of, uint64_t stack) {
  assert(of < std::size(passed_) && count_ <= kMax);
  int result = of <= kEvent ? next_[of].exchange(0, std::memory_order_relaxed) : 0;
  const uint64_t of_all = passed_[of].fetch_add(1, std::memory_order_relaxed) + 1;
  for (size_t i = 0; i < count_; i++) {
    const Fault& fault = faults_[i];
    if (fault.of != of || (fault.stack != 0 && fault.stack != stack)) continue;
    const uint64_t number = fault.stack == 0 ? of_all : passed_there_[i].fetch_add(1, std::memory_order_relaxed) + 1;
    if (result == 0 && (fault.lasts ? number >= fault.number : number == fault.number)) result = fault.result;
  }
  if (result == kDies) kill(getpid(), SIGKILL);
  return result;
}

bool FaultPlan::register_bytes(uint64_t size) {
  if (registered_.fetch_add(size, std::memory_order_relaxed) + size <= most_registered_) return true;
  unregister_bytes(size);
  return false;
}

int FaultPlan::next_call(size_t verb) {
  if (!needs_stack_ && points_ == nullptr) return next(verb, 0);
  const CallSite site = call_site();
  if (points_ != nullptr) note(verb, site);
  return next(verb, site.stack);
}

int FaultPlan::next_call(std::string_view name) {
  const Name* what = find_counted(name);
  return what == nullptr ? 0 : next_call(static_cast<size_t>(what->value));
}

roce::CompletionStatus FaultPlan::next_completion(roce::CompletionOpcode opcode) {
  CallSite site;
  site.stack = static_cast<uint64_t>(opcode) + 1;
  if (points_ != nullptr) {
    const std::string_view name = opcode_name(opcode);
    memcpy(site.place, name.data(), std::min(name.size(), sizeof site.place - 1));
    note(kCompletion, site);
  }
  return static_cast<roce::CompletionStatus>(next(kCompletion, site.stack));
}

bool FaultPlan::next_outage() {
  const int microseconds = next(kLink, 0);
  if (microseconds != 0) last_outage_us_.store(static_cast<uint64_t>(microseconds), std::memory_order_relaxed);
  return microseconds != 0;
}

// Without a free place the call is not noted.
void FaultPlan::note(size_t verb, const CallSite& site) {
  const char* name = "";
  for (const Name& candidate : kCounted) {
    if (candidate.value == static_cast<int>(verb)) name = candidate.name.data();
  }
  const auto process = static_cast<uint32_t>(getpid());
  for (size_t i = 0; i < kMaxFaultPoints; i++) {
    FaultPoint& point = points_[i];
    PointState state = PointState::kFree;
    if (point.state.compare_exchange_strong(state, PointState::kTaken)) {
      point.process = process;
      point.stack = site.stack;
      point.calls.store(1);
      snprintf(point.program, sizeof point.program, "%s", program_invocation_short_name);
      snprintf(point.verb, sizeof point.verb, "%s", name);
      memcpy(point.place, site.place, sizeof point.place);
      point.state.store(PointState::kComplete);
      return;
    }
    if (state != PointState::kComplete || point.process != process || point.stack != site.stack) continue;
    if (strcmp(point.verb, name) != 0) continue;
    point.calls.fetch_add(1);
    return;
  }
}

namespace {

// Null if there is no such file.
FaultPoint* map_points() {
  const char* name = provider::settings().fault_points;
  if (name == nullptr) return nullptr;
  const OwnedFd file(open(name, O_RDWR | O_CLOEXEC));
  if (!file) return nullptr;
  void* memory = mmap(nullptr, kFaultPointsSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<FaultPoint*>(memory);
}

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
      made.record(map_points());
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

}  // namespace dapple::soft
