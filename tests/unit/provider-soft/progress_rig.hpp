// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Queue pairs with an engine that notes the calls, and a wire that leads nowhere.
#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/core/queue_pair.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

// Does what a test wants, and asserts that its caller has the queue pair's lock.
class NotedEngine final : public roce::QueuePair {
 public:
  explicit NotedEngine(const soft::BiasedMutex& mutex) : mutex_(mutex) {}

  uint32_t received = 0, for_host = 0, transmitted = 0, expired = 0, flushed = 0;
  uint32_t packets = 0;  // that transmit() writes
  bool has_more = false;
  roce::Time next = roce::kNever;
  roce::Owes owed = roce::Owes::kNothing;
  roce::QpCounters noted;
  void set_state(roce::QpState state) { state_ = state; }

  bool modify(const roce::QpAttributes& attributes, uint32_t) override {
    soft::assert_held(mutex_);
    state_ = attributes.state;
    return true;
  }
  roce::QpAttributes attributes() const override { return {}; }
  roce::PostError post_send(const roce::SendRequest&) override { return roce::PostError::kNone; }
  roce::PostError check_send(const roce::SendRequest&, uint32_t) const override { return roce::PostError::kNone; }
  void receives_posted() override { flushed++; }
  void receive(roce::Now, const roce::Packet&) override {
    soft::assert_held(mutex_);
    received++;
  }
  void receive_for_host(const roce::Packet&) override {
    soft::assert_held(mutex_);
    for_host++;
  }
  bool transmit(roce::Now, roce::PacketSink& sink) override {
    soft::assert_held(mutex_);
    transmitted++;
    owed = roce::Owes::kNothing;
    for (uint32_t i = 0; i < packets && sink.reserve(64) != nullptr; ++i) sink.commit(nullptr);
    return has_more;
  }
  roce::Owes owes() const override { return owed; }
  roce::Time deadline() const override { return next; }
  void expire(roce::Now) override { expired++; }
  void observed_by(roce::RequestObserver&) override {}
  const roce::QpCounters& counters() const override { return noted; }
  uint64_t outstanding_sends() const override { return 0; }

 private:
  const soft::BiasedMutex& mutex_;
};

class WireToNowhere final : public soft::Wire {
 public:
  uint32_t sent = 0;

  soft::SendBatch* make_batch() override { return new Batch(*this); }
  size_t receive(soft::ArrivalSink&) override { return 0; }
  int receive_fd() const override { return -1; }
  int join(const uint8_t*, uint32_t) override { return 0; }
  int leave(const uint8_t*, uint32_t) override { return 0; }

 private:
  class Batch final : public soft::SendBatch {
   public:
    explicit Batch(WireToNowhere& wire) : wire_(wire) {}
    std::byte* reserve(size_t size) override { return size <= sizeof room_ ? room_ : nullptr; }
    void commit(const roce::AddressVector*) override { wire_.sent++; }
    void set_path(const soft::Path&) override {}
    bool flush() override { return true; }

   private:
    WireToNowhere& wire_;
    std::byte room_[256] = {};
  };
};

struct ProgressRig {
  WireToNowhere wire;
  soft::Publication publication;
  soft::SlotCounters counters;
  soft::Wakeup wakeup;
  soft::Engines engines{wire, publication, counters, wakeup};
  soft::Handover& handover = engines.handover;
  soft::Cq cq;
  std::vector<std::unique_ptr<soft::Qp>> qps;

  ProgressRig() {
    soft::Problem problem;
    assert_true(wakeup.open(problem));
    // The background thread sleeps.
    handover.plan_wake(roce::kNever);
  }
  soft::Qp& make_qp() {
    qps.push_back(std::make_unique<soft::Qp>());
    soft::Qp& qp = *qps.back();
    qp.send_cq = qp.recv_cq = &cq;
    qp.init.qp_type = IBV_QPT_RC;
    qp.engine = std::make_unique<NotedEngine>(qp.mutex);
    assert_true(engines.timers.make_room());
    return qp;
  }
  static NotedEngine& engine_of(soft::Qp& qp) { return static_cast<NotedEngine&>(*qp.engine); }
  // Tells whether the background thread has been woken since the last call.
  bool was_woken() const {
    pollfd waiting = {wakeup.fd(), POLLIN, 0};
    if (poll(&waiting, 1, 0) != 1) return false;
    wakeup.woken();
    return true;
  }
  static bool is_locked(soft::Qp& qp) {
    if (!qp.mutex.try_lock()) return true;
    qp.mutex.unlock();
    return false;
  }
};

}  // namespace dapple::tests
