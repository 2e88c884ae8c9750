// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Event dispatcher: merges the completions of one CQ with events that software makes.
//
// Threads: post() from any thread. The consumer's calls are serialized by the consumer unless the IA is thread-safe;
// one thread at a time may wait, and nobody dequeues beside it (uDAPL 2.0 6.3.2: INVALID_STATE).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/event.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/software_queue.hpp"
#include "udapl/core/unique_fd.hpp"

namespace dapple::dat {

class Ep;

// DAT_EVD_FLAGS.
enum EvdStream : uint32_t {
  kEvdSoftware = 0x001,
  kEvdCr = 0x010,
  kEvdDto = 0x020,
  kEvdConnection = 0x040,
  kEvdRmrBind = 0x080,
  kEvdAsync = 0x100,
};

class Evd : public Object {
 public:
  static constexpr Kind kKind = Kind::kEvd;
  static constexpr uint32_t kInfinite = ~0U;  // microseconds

  // min_qlen > 0. The caller holds the control mutex.
  static Result<Evd*> create(Ia& ia, uint32_t min_qlen, uint32_t streams);
  // INVALID_STATE while an object reports to this EVD or a thread waits. Connection requests that were never dequeued
  // go with it. The caller holds the control mutex.
  static Result<> free(Evd& evd);

  uint32_t qlen() const { return qlen_; }
  uint32_t streams() const { return streams_; }
  bool has(uint32_t streams) const { return (streams_ & streams) == streams; }
  bool waitable() const { return !unwaitable_.load(std::memory_order_relaxed); }
  ibv_cq* cq() const { return cq_.get(); }

  // Stores an event made by software. On a full queue the event is dropped and the IA's asynchronous EVD is told.
  bool post(Event event);
  // dat_evd_post_se.
  Result<> post_software(void* pointer);

  // QUEUE_EMPTY when there is none.
  Result<> dequeue(Event& out);
  // timeout in microseconds. more: events left after this one, also on TIMEOUT_EXPIRED.
  Result<> wait(uint32_t timeout_us, uint32_t threshold, Event& out, uint32_t& more);

  void set_waitable(bool waitable);
  // Ends a wait with DAT_ABORT; the EVD is about to go.
  void abort();
  bool has_waiter() const { return waiter_.load(std::memory_order_acquire); }

  // Forgets the completions of an endpoint whose queue pair is gone.
  void forget_completions(const Ep& ep);
  // The same, and what was reported about its connection: the endpoint itself goes.
  void forget(const Ep& ep);
  // Forgets the asynchronous errors of an object that goes.
  void forget_errors(const Object& object);
  // Takes what the hardware has completed off the CQ, without delivering it, until as many as the EVD was made for
  // wait.
  void reap();

 private:
  friend class Arena<Evd>;
  Evd(Ia& ia, uint32_t qlen, uint32_t streams);
  Result<> open_queues(uint32_t min_qlen);

  uint32_t available() const { return software_.count() + (pending_head_ - pending_tail_); }
  bool pop(Event& out);
  bool refill();
  void deliver(const ibv_wc& completion, Event& out);
  Result<> sleep(int64_t deadline_ns, uint32_t threshold);
  bool arm(uint32_t threshold);
  void wake();

  const uint32_t qlen_;
  const uint32_t streams_;
  bool cq_broken_ = false;

  // Destroyed in reverse order: the CQ goes before the channel it reports to.
  UniqueFd wake_fd_;
  verbs::CompChannel channel_;
  verbs::Cq cq_;
  uint32_t unacknowledged_ = 0;  // notifications read from channel_

  // Completions taken off the CQ and not delivered yet.
  std::unique_ptr<ibv_wc[]> pending_;
  uint32_t pending_mask_ = 0;
  uint32_t pending_head_ = 0;
  uint32_t pending_tail_ = 0;

  SoftwareQueue software_;
  OptionalMutex data_mutex_;
  std::atomic<bool> waiter_ = false;
  std::atomic<bool> sleeping_ = false;
  std::atomic<bool> unwaitable_ = false;
  std::atomic<bool> aborted_ = false;
  int64_t spin_ns_;
};

}  // namespace dapple::dat
