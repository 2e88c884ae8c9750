// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Between a queue pair's engine and its events under dapple-run --check: explains requests of the peer that the queue
// pair's attributes forbid, and knows how long a message has waited for a receive.
#pragma once

#include <atomic>
#include <cstdint>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::check {

class CheckingEvents final : public roce::EventSink {
 public:
  CheckingEvents(Checker& checker, const Qp& qp, roce::EventSink& below) : checker_(checker), qp_(qp), below_(below) {}

  void event(roce::QpEvent event, uint32_t qpn) override { below_.event(event, qpn); }
  void refused(uint32_t access) override;
  void denied(const roce::RemoteRange& range, uint32_t rights) override { below_.denied(range, rights); }
  void cannot_invalidate(uint32_t rkey) override { below_.cannot_invalidate(rkey); }
  void send_fails(const roce::SendRequest& request, roce::CompletionStatus status) override {
    below_.send_fails(request, status);
  }
  void receive_fails(const roce::ReceiveRequest& request, roce::CompletionStatus status) override {
    below_.receive_fails(request, status);
  }
  void read_fails(const roce::SendRequest& request, roce::CompletionStatus status) override {
    below_.read_fails(request, status);
  }
  void dropped(const roce::DroppedMessage& message) override { below_.dropped(message); }
  void sends_fail() override { below_.sends_fail(); }
  void not_ready() override;

  // The time of now_ns() since which a message has found no receive, again and again. 0: none waits, as far as is
  // known.
  uint64_t unready_since() const { return unready_since_.load(std::memory_order_relaxed); }
  // A message has got its receive, or the queue pair begins anew.
  void forget_unready() {
    if (unready_since() != 0) unready_since_.store(0, std::memory_order_relaxed);
  }

 private:
  Checker& checker_;
  const Qp& qp_;
  roce::EventSink& below_;
  std::atomic<uint64_t> unready_since_{0};
};

}  // namespace dapple::soft::check
