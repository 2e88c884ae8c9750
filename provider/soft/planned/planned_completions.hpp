// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/objects/queues/completion_queue.hpp"

namespace dapple::soft {

// Between a queue pair's engine and a completion queue: successful completions fail by plan, or asynchronous events
// come with them, or their port goes down. After a completion that has failed the queue pair is in error, as after any
// other.
class PlannedCompletions final : public roce::CompletionSink {
 public:
  PlannedCompletions(FaultPlan& plan, roce::CompletionSink& next, QpEvents& events)
      : plan_(plan), next_(next), events_(events) {}

  bool complete(const roce::Completion& completion) override {
    return pass(completion, [this](const roce::Completion& shown) { return next_.complete(shown); });
  }
  bool complete_match(const roce::Completion& completion, const roce::MatchedTag& tag) override {
    // A match whose bytes follow ends no request.
    if ((completion.flags & roce::kTagDataValid) == 0) return next_.complete_match(completion, tag);
    return pass(completion, [&](const roce::Completion& shown) { return next_.complete_match(shown, tag); });
  }

 private:
  template <typename Next>
  bool pass(const roce::Completion& completion, Next next) {
    roce::Completion shown = completion;
    if (shown.status == roce::CompletionStatus::kSuccess) shown.status = plan_.next_completion(completion.opcode);
    if (shown.status != completion.status) {
      const bool is_receive = completion.opcode >= roce::CompletionOpcode::kReceive;
      events_.plan_error(completion.request_id, is_receive, shown.status);
    }
    const bool counts = completion.status == roce::CompletionStatus::kSuccess;
    const int event = counts ? plan_.next_event() : -1;
    const bool outage = counts && plan_.next_outage();
    const bool is_kept = next(shown);
    if (event >= 0) events_.plan_event(event);
    if (outage) events_.plan_outage();
    return is_kept;
  }

  FaultPlan& plan_;
  roce::CompletionSink& next_;
  QpEvents& events_;
};

}  // namespace dapple::soft
