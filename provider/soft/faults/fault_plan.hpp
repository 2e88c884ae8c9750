// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_FAULTS: the calls and completions that fail by plan, such as "ibv_reg_mr@3=ENOMEM,completion@5=WR_FLUSH_ERR".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "provider/soft/faults/fault_points.hpp"
#include "provider/soft/faults/fault_word.hpp"
#include "provider/soft/faults/planned_names.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft {

struct CallSite;

// Threads may count at the same time.
class FaultPlan {
 public:
  static constexpr size_t kMax = kMaxPlannedFaults;

  // "NAME@N=RESULT": the N-th one fails; "NAME@N+=RESULT": it and all later ones. NAME is a verb, and RESULT an errno
  // by its name or number; or NAME is "completion", and RESULT a status of libibverbs without its prefix IBV_WC_; or
  // NAME is "event", and RESULT an asynchronous event without its prefix IBV_EVENT_, which comes with the completion.
  // Or NAME is "link", and RESULT a time such as "20ms": the port goes down for this time.
  // If RESULT is "SIGKILL", the process dies. "registered=BYTES" limits the memory that is registered at a time.
  // "arm=TIME" lets ibv_req_notify_cq() wait so long for a completion before it arms an empty queue.
  // "NAME#HEX" counts only the verb's calls from the call site with this stack, or the completions with the opcode
  // HEX - 1. False if it is malformed, or if kMax are planned; then `reason` has one line.
  bool add(std::string_view entry, std::string& reason);
  bool add(std::string_view entry);
  // True after add() has refused a well-formed entry because kMax are planned.
  bool is_overfull() const { return is_overfull_; }
  // Plans one fault, for the next call or completion: NAME, and a number for RESULT, as above. A second fault for the
  // same name replaces the first until that has come. False if the name or the number is unknown.
  bool set_next(std::string_view name, int result);
  void clear_next();
  // True if a fault of set_next() with this name, or with any name if it is empty, has not come yet.
  bool awaits_next(std::string_view name) const;
  // The program will call set_next().
  void expect_next() { plans_calls_ = plans_completions_ = true; }
  // From now on the plan writes down there what has come true and, if that is wanted, the calls and completions.
  void tell(FaultNotes* notes) {
    notes_ = notes;
    notes_points_ = notes != nullptr && notes->wants_points.load() != 0;
  }

  bool plans_calls() const { return plans_calls_ || notes_points_; }
  bool plans_outages() const { return plans_outages_; }
  bool plans_completions() const { return plans_completions_ || notes_points_; }

  // 0, or the errno with which this call fails.
  int next_call(size_t verb);
  // The same by its name; 0 for a function that the plan does not count.
  int next_call(std::string_view name);
  // The status that the program gets for a successful completion.
  roce::CompletionStatus next_completion(roce::CompletionOpcode opcode);
  // The event that comes with this completion, an ibv_event_type, or -1.
  int next_event() { return next(kEvent, 0) - 1; }
  // True if the port goes down with this completion, for the time that last_outage_ns() then is.
  bool next_outage();
  uint64_t last_outage_ns() const { return last_outage_us_.load(std::memory_order_relaxed) * 1000; }
  // False if this many more bytes would exceed the limit. Otherwise they count until unregister_bytes().
  bool register_bytes(uint64_t size);
  uint64_t arm_delay_ns() const { return arm_delay_ns_; }
  void unregister_bytes(uint64_t size) { registered_.fetch_sub(size, std::memory_order_relaxed); }

 private:
  int next(size_t of, uint64_t stack);
  void note_coming(size_t fault, uint64_t number, bool came);
  // `name`: of the place; empty if it is the call site's.
  void note(size_t verb, const CallSite& site, std::string_view name);

  PlannedFault faults_[kMax];
  size_t count_ = 0;
  bool plans_calls_ = false;
  bool plans_completions_ = false;
  bool plans_outages_ = false;
  bool needs_stack_ = false;
  bool is_overfull_ = false;
  uint64_t most_registered_ = UINT64_MAX;
  uint64_t arm_delay_ns_ = 0;
  std::atomic<uint64_t> registered_{0};
  std::atomic<uint64_t> passed_[static_cast<size_t>(PlannedCommand::kCount)] = {};
  std::atomic<uint64_t> passed_there_[kMax] = {};  // of faults with a stack
  std::atomic<uint64_t> last_outage_us_{0};
  std::atomic<int> next_[kEvent + 1] = {};
  FaultNotes* notes_ = nullptr;
  bool notes_points_ = false;
};

// This process' plan; null if DAPPLE_FAULTS has none, or if DAPPLE_FAULTS_IN names another program. A malformed one is
// refused when the device is opened.
FaultPlan* fault_plan();

// dappledv_fault_next(3), dappledv_fault_clear(3) and dappledv_fault_pending(3). EBUSY: fault_plan() was called before
// the first of these calls, so an open device may have operations that nobody counts.
int plan_next_fault(const char* name, int result);
int clear_next_faults();
// Any name if it is null.
bool awaits_next_fault(const char* name);

}  // namespace dapple::soft
