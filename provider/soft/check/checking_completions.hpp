// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Between a queue pair's engine and a completion queue under dapple-run --check.
#pragma once

#include "provider/soft/check/checker.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/ports.hpp"

namespace dapple::soft::check {

class CheckingCompletions final : public roce::CompletionSink {
 public:
  CheckingCompletions(Checker& checker, const Qp& qp, const Cq& queue, roce::CompletionSink& below)
      : checker_(checker), qp_(qp), queue_(queue), below_(below) {}

  void complete(const roce::Completion& completion) override;

 private:
  const void* receives() const;
  void note_withheld(const roce::Completion& completion);
  void end_receive(const roce::Completion& completion);
  void report_not_ready();
  void report_overrun();

  Checker& checker_;
  const Qp& qp_;
  const Cq& queue_;
  roce::CompletionSink& below_;
};

}  // namespace dapple::soft::check
