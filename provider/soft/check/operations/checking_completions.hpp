// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Between a queue pair's engine and a completion queue under dapple-run --check.
#pragma once

#include <memory>
#include <utility>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::check {

class CheckingCompletions final : public roce::CompletionSink {
 public:
  CheckingCompletions(Checker& checker, const Qp& qp, const Cq& queue, roce::CompletionSink& below)
      : checker_(checker), qp_(qp), queue_(queue), below_(below) {}

  bool complete(const roce::Completion& completion) override;
  bool complete_match(const roce::Completion& completion, const roce::MatchedTag& tag) override;

 private:
  // `next`: the same function of the sink below.
  template <typename Next>
  bool pass(const roce::Completion& completion, Next next);
  // The queue, or the list of tags, that the completed receive was in.
  const void* receives(const roce::Completion& completion) const;
  void note_withheld(const roce::Completion& completion);
  void end_receive(const roce::Completion& completion);
  void report_not_ready();
  void report_overrun();

  Checker& checker_;
  const Qp& qp_;
  const Cq& queue_;
  roce::CompletionSink& below_;
};

// Between a shared receive queue of an XRC domain and its completion queue. Messages to queue pairs of other processes
// pass through no CheckingCompletions here.
class ForeignReceives final : public roce::CompletionSink {
 public:
  ForeignReceives(Checker& checker, Srq& srq)
      : checker_(checker), srq_(srq), traced_(std::move(srq.xrc.traced)), below_(*srq.xrc.completions) {}

  bool complete(const roce::Completion& completion) override;

 private:
  Checker& checker_;
  const Srq& srq_;
  const std::unique_ptr<roce::CompletionSink> traced_;
  roce::CompletionSink& below_;
};

}  // namespace dapple::soft::check
