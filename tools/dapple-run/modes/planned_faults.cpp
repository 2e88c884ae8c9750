// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/modes/planned_faults.hpp"

#include <stdlib.h>
#include <string.h>

#include <string_view>

#include "provider/soft/faults/disturbances.hpp"
#include "provider/soft/faults/faults.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {
namespace {

// parse_faults() names the variable.
constexpr std::string_view kVariable = "DAPPLE_FAULTS: ";

std::string text_of_environment() {
  const char* given = getenv("DAPPLE_FAULTS");
  return given == nullptr ? "" : given;
}

const char* why_missed(soft::Disturbance disturbance) {
  switch (disturbance) {
    case soft::Disturbance::kArmed:
      return "no completion came while ibv_req_notify_cq() waited with an empty queue";
    case soft::Disturbance::kOrder:
      return "no RDMA Write or packet was there whose order could change";
    default:
      return "no packet by UDP has met it; DAPPLE_SAME_HOST=off sends all packets by UDP";
  }
}

}  // namespace

void check_faults(const char* from, const char* words) {
  soft::FaultSettings settings;
  soft::Problem problem;
  if (soft::parse_faults(words, settings, problem)) return;
  const std::string_view line = problem.line;
  fail(kWrongUse, "%s: %s", from, std::string(line.substr(line.starts_with(kVariable) ? kVariable.size() : 0)).c_str());
}

PlannedFaults::PlannedFaults() {
  const std::string all = text_of_environment();
  if (all.empty()) return;
  check_faults("DAPPLE_FAULTS", all.c_str());
  soft::FaultSettings settings;
  soft::Problem problem;
  if (soft::parse_faults(all.c_str(), settings, problem)) missed_code_ = settings.missed;
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size() == rest.size() ? rest.size() : word.size() + 1);
    soft::PlannedFault fault;
    if (word.starts_with(soft::kRegistered)) {
      limit_ = word;
    } else if (soft::read_fault(word, fault).empty()) {
      words_.emplace_back(word);
    } else if (soft::disturbance_of(word) != soft::Disturbance::kCount && missed_code_ != 0) {
      disturbances_.emplace_back(word);
    }
  }
  if (!any()) return;
  file_.emplace("dapple-fault-notes", sizeof(soft::FaultNotes));
  notes_ = static_cast<const soft::FaultNotes*>(file_->memory());
  setenv("DAPPLE_FAULT_POINTS", file_->path().c_str(), 1);
}

int PlannedFaults::say_missed(int status) const {
  if (!any()) return status;
  size_t missed = 0;
  for (size_t i = 0; i < words_.size(); i++) {
    if (notes_->comings[i].came.load() != 0) continue;
    missed++;
    const auto most = static_cast<unsigned long long>(notes_->comings[i].most.load());
    if (most == 0) {
      say("the fault %s never came: no process has got to one of these calls or completions", words_[i].c_str());
    } else {
      say("the fault %s never came: the last one of a process was number %llu", words_[i].c_str(), most);
    }
  }
  const soft::FaultComing& limit = notes_->comings[soft::kMaxPlannedFaults];
  if (!limit_.empty() && limit.came.load() == 0) {
    missed++;
    say("the limit %s was never reached: %llu bytes were the most", limit_.c_str(),
        static_cast<unsigned long long>(limit.most.load()));
  }
  for (const std::string& word : disturbances_) {
    const soft::Disturbance disturbance = soft::disturbance_of(word);
    if (notes_->disturbances[static_cast<size_t>(disturbance)].load() != 0) continue;
    missed++;
    say("the fault %s never came: %s", word.c_str(), why_missed(disturbance));
  }
  return missed > 0 && status == 0 ? missed_code_ : status;
}

}  // namespace dapple::run
