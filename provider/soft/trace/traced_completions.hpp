// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/member/trace.hpp"
#include "provider/soft/faults/verbs_names.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// In front of a completion queue, or of its time stamps: writes a line for each completion, before the program can see
// it.
class TracedCompletions final : public roce::CompletionSink {
 public:
  TracedCompletions(Trace& trace, const Cq& cq, roce::CompletionSink& next) : trace_(trace), cq_(cq), next_(next) {}

  bool complete(const roce::Completion& completion) override {
    show(completion);
    return next_.complete(completion);
  }
  bool complete_match(const roce::Completion& completion, const roce::MatchedTag& tag) override {
    show(completion);
    return next_.complete_match(completion, tag);
  }

 private:
  void show(const roce::Completion& completion) {
    TraceLine line;
    line.text("event", "completion").hex("qp", completion.qpn).hex("cq", reinterpret_cast<uintptr_t>(&cq_.abi));
    line.number("wr_id", completion.request_id).text("status", status_name(completion.status));
    line.text("opcode", opcode_name(completion.opcode)).number("bytes", completion.byte_count);
    trace_.append(line);
  }

  Trace& trace_;
  const Cq& cq_;
  roce::CompletionSink& next_;
};

}  // namespace dapple::soft
