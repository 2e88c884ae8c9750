// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The part that dapple-run --explain and --check add to a queue pair: it learns of each request and receive that fails,
// of each message that is dropped, and of each request of a peer that is refused.
#pragma once

#include "provider/soft/check/reports/stack.hpp"
#include "provider/soft/explain/failures.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::explain {

// Called under the queue pair's lock, behind the queue pair's own events.
class ExplainedQp final : public FailureSink {
 public:
  explicit ExplainedQp(const Qp& qp) : qp_(qp), made_{"made by ibv_create_qp", check::Stack::here()} {}

  void event(roce::QpEvent event, uint32_t qpn) override;
  void refused(uint32_t access) override;
  void denied(const roce::RemoteRange& range, uint32_t rights) override;
  void cannot_invalidate(uint32_t rkey) override;
  void send_fails(const roce::SendRequest& request, roce::CompletionStatus status) override;
  void receive_fails(const roce::ReceiveRequest& request, roce::CompletionStatus status) override;
  void read_fails(const roce::SendRequest& request, roce::CompletionStatus status) override;
  void dropped(const roce::DroppedMessage& message) override;
  void completion_is_planned(uint64_t id, bool is_receive, roce::CompletionStatus status) override;

 private:
  Failure failure_of(const roce::SendRequest& request, roce::CompletionStatus status) const;
  // The request of the peer that is refused ends with an event, a receive or a dropped message; its peer learns the
  // reason if that end is in this process.
  void note_refusal(const Reason& reason);
  // The check has reported why the queue pair refuses a request.
  bool is_told() const;

  const Qp& qp_;
  const check::ReportedStack made_;
  Reason refusal_;      // of the request that is refused now
  uint32_t shown_ = 0;  // bits of the reasons that were reported
};

// Gives the queue pair such a part, if the process explains. Before the queue pair has its engine.
void explain_qp(Qp& qp);

// The two ends of the queue pair, without a request that fails. The caller has the queue pair's lock.
Failure ends_of(const Qp& qp);

}  // namespace dapple::soft::explain
