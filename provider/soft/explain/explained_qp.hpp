// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The part that dapple-run --explain and --check add to a queue pair: it learns of each request and receive that fails,
// and of each message that is dropped.
#pragma once

#include "provider/soft/check/reports/stack.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/ports.hpp"

namespace dapple::soft::explain {

// Called under the queue pair's lock, behind the queue pair's own events.
class ExplainedQp final : public roce::EventSink {
 public:
  explicit ExplainedQp(const Qp& qp) : qp_(qp), made_{"made by ibv_create_qp", check::Stack::here()} {}

  void event(roce::QpEvent, uint32_t) override {}
  void send_fails(const roce::SendRequest& request, roce::CompletionStatus status) override;
  void receive_fails(const roce::ReceiveRequest& request, roce::CompletionStatus status) override;
  void dropped(const roce::DroppedMessage& message) override;

 private:
  const Qp& qp_;
  const check::ReportedStack made_;
  uint32_t shown_ = 0;  // bits of the reasons that were reported
};

// Gives the queue pair such a part, if the process explains. Before the queue pair has its engine.
void explain_qp(Qp& qp);

}  // namespace dapple::soft::explain
