// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Event dispatcher: merges the completions of one CQ with events that software makes.
//
// Threads: internally locked on any IA. One thread at a time may wait, and no other thread may dequeue meanwhile (uDAPL
// 2.0 6.3.2: INVALID_STATE).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/counters.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/event.hpp"
#include "udapl/core/flush_list.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/notifier.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/software_queue.hpp"
#include "udapl/core/unique_fd.hpp"
#include "udapl/core/wake_up.hpp"

namespace dapple::dat {

class Cno;
class Ep;
struct Cookie;

// DAT_EVD_FLAGS.
enum EvdStream : uint32_t {
  kEvdSoftware = 0x001,
  kEvdCr = 0x010,
  kEvdDto = 0x020,
  kEvdConnection = 0x040,
  kEvdRmrBind = 0x080,
  kEvdAsync = 0x100,
  kEvdExtension = 0x200,
};

// DAT_EVD_STATE_CONFIG_*: which receive completions notify.
enum class EvdConfig : uint8_t { kNotify, kSolicited, kThreshold };

class Evd : public Object {
 public:
  static constexpr Kind kKind = Kind::kEvd;
  static constexpr uint32_t kInfinite = ~0U;  // microseconds
  static constexpr uint32_t kBatch = 16;      // completions taken off a CQ at a time
  static constexpr uint32_t kSpare = 16;      // entries of a CQ beyond those the consumer asked for

  // min_qlen > 0. The caller holds the control mutex.
  static Result<Evd*> create(Ia& ia, uint32_t min_qlen, uint32_t streams);
  // INVALID_STATE while an object reports to this EVD or a thread waits. Connection requests that were never dequeued
  // go with it. The caller holds the control mutex.
  static Result<> free(Evd& evd);

  uint32_t qlen() const { return qlen_.load(std::memory_order_relaxed); }
  uint32_t streams() const { return streams_; }
  bool has(uint32_t streams) const { return (streams_ & streams) == streams; }
  bool waitable() const { return !unwaitable_.load(std::memory_order_relaxed); }
  ibv_cq* cq() const { return cq_.get(); }

  // Stores an event made by software. On a full queue the event is dropped and the IA's asynchronous EVD gets an event.
  bool post(Event event);
  // One more event was lost. Returns how many were, since the EVD was made.
  uint32_t count_lost() { return lost_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // dat_evd_post_se.
  Result<> post_software(void* pointer);

  // A face takes an event by sink(event), or by sink.completion(cookie, length) when it is a DTO with a plain cookie
  // that has succeeded: with no Event in between. Inline, in evd_take.hpp.
  //
  // QUEUE_EMPTY when there is none.
  template <class Sink>
  Result<> dequeue_to(Sink sink);
  // timeout in microseconds. more: events left after this one, also on TIMEOUT_EXPIRED.
  template <class Sink>
  Result<> wait_to(uint32_t timeout_us, uint32_t threshold, Sink sink, uint32_t& more);
  // The same two, as an Event.
  Result<> dequeue(Event& out);
  Result<> wait(uint32_t timeout_us, uint32_t threshold, Event& out, uint32_t& more);

  // INVALID_STATE when more events wait than would fit, or the CQ cannot be shrunk to so few entries. Traffic may flow.
  // The caller holds the control mutex. Throws std::bad_alloc.
  Result<> resize(uint32_t min_qlen);

  // The notification that an EP needs of its receives; all EPs of an EVD must agree. can_configure() is false if EPs,
  // apart from this number of leaving ones, need another notification; then configure() must not be called. The caller
  // holds the control mutex.
  bool can_configure(EvdConfig config, uint32_t leaving) const { return configured_ <= leaving || config == config_; }
  void configure(EvdConfig config);
  void unconfigure();
  EvdConfig config() const { return config_; }

  void set_waitable(bool waitable);
  // Ends a wait with DAT_ABORT; the EVD is about to go.
  void abort();
  bool has_waiter() const { return waiter_.load(std::memory_order_seq_cst) != Waiter::kNone; }

  // Completes as flushed, after all that the device has said, what it has left in this ring. From any thread, once the
  // device has flushed what it will.
  void flush_later(FlushLink& link);

  // Takes all off the CQ, without delivering it, so that forgetting an endpoint finds room. Fails for want of memory.
  Result<> empty_cq();
  // Forgets the completions of an endpoint whose queue pair is gone.
  void forget_completions(Ep& ep);
  // The same, and what was reported about its connection: the endpoint itself goes.
  void forget(Ep& ep);
  // Forgets the asynchronous errors of an object that goes.
  void forget_errors(const Object& object);
  // The CNO that is notified of events while no thread waits here, or null. The caller holds the control mutex for the
  // first two.
  Result<> set_cno(Cno* cno);
  Result<> set_enabled(bool enabled);
  Cno* cno() const { return cno_.load(std::memory_order_acquire); }
  bool enabled() const;
  // From the CNO's notifier, with its lock held: takes the notifications off the channel. True when the CNO is to tell
  // of it.
  bool serve_channel();
  // From the connection manager, with the control mutex held: a notification on the channel that EVDs share.
  void on_notification();
  // Likewise, that none will come there any more.
  void on_lost_channel();
  NotifierLink& notifier_link() { return notifier_link_; }

  const EvdCounterSet& counters() const { return counters_; }
  CounterBases<kEvdCounters>& counter_bases() { return counter_bases_; }

  // Takes what the hardware has completed off the CQ, without delivering it, until as many as the EVD was made for
  // wait.
  void reap();

  // A suppressed request that is signalled takes an entry of the CQ that its consumer does not count with: one of the
  // spare ones, of which the CQ would overflow if there were more. False when none is left. From any thread.
  bool take_spare();
  // Makes the CQ larger by so many requests that may all be suppressed: without a completion while they succeed, and
  // each with one when they are flushed. A device that cannot resize keeps its CQ. Fails for want of memory. From any
  // thread.
  Result<> make_room_to_flush(uint32_t num_requests);
  void give_back_room_to_flush(uint32_t num_requests) { to_flush_.fetch_sub(num_requests, std::memory_order_relaxed); }
  void give_back_spare() { spare_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend class Arena<Evd>;
  Evd(Ia& ia, uint32_t qlen, uint32_t streams);
  ~Evd();
  Result<> open_queues(uint32_t min_qlen);
  // Tells whether other events than completions may come.
  bool has_software_events() const { return streams_ & ~uint32_t{kEvdDto | kEvdRmrBind}; }

  enum class Waiter : uint8_t { kNone, kWaiting, kLeaving };
  // Tells whether a thread will still see an event that is stored now.
  bool waited_on() const { return waiter_.load(std::memory_order_seq_cst) == Waiter::kWaiting; }
  uint32_t available() const { return software_.count() + (pending_head_ - pending_tail_); }
  // The same, or enough for everybody when there are rings to be flushed.
  uint32_t available_or_urgent() const { return software_.count_or_urgent() + (pending_head_ - pending_tail_); }
  bool pop(Event& out);
  template <class Sink>
  bool pop_to(Sink sink);
  enum class Refilled : uint8_t { kNothing, kPending, kPopped };
  template <class Sink>
  Refilled refill_or_pop(Sink sink);
  // The two, of any sink.
  struct Taker {
    void* sink;
    bool (*pop)(Evd&, void* sink);
    Refilled (*refill_or_pop)(Evd&, void* sink);
  };
  template <class Sink>
  bool pop_unusual(Sink sink);
  bool refill();
  int poll_empty();
  bool accept_polled(int count) { return count != 0 && accept_batch(count); }
  bool accept_batch(int count);
  uint32_t accept_all(ibv_wc* batch, int count);
  bool accept(ibv_wc& completion);
  bool is_plain(const ibv_wc& completion, const Cookie& cookie) const;
  template <class Sink>
  void report_plain(const ibv_wc& completion, const Cookie& cookie, Sink sink);
  bool accept_unusual(const ibv_wc& completion, Cookie& cookie);
  void flush_rings();
  void deliver(const ibv_wc& completion, Event& out);
  // The waiter, after its first look. looked_at: the value of signals_ at that look; null if there was none.
  Result<> wait_for_events(uint32_t timeout_us, uint32_t threshold, const uint32_t* looked_at, const Taker& taker,
                           uint32_t& more);
  void learn_to_spin(int64_t waited_ns);
  void leave_wait(uint32_t more);
  // A thread's place as the waiter, given up however its wait ends: by pthread_cancel() too.
  struct Leaving {
    Evd& evd;
    const uint32_t& more;
    ~Leaving() { evd.leave_wait(more); }
  };
  Result<> sleep(int64_t deadline_ns, uint32_t threshold, uint32_t signals);
  Result<> sleep_without_channel(int64_t deadline_ns, uint32_t threshold, uint32_t signals);
  void take_notification();
  bool arm(uint32_t threshold, uint32_t signals);
  bool take(uint32_t threshold, const uint32_t* unless_signals, const Taker& taker);
  bool heard(uint32_t signals) const { return signals != signals_ || software_.any(); }
  // Every call that would look into it or arm it says INTERNAL_ERROR.
  bool cq_broken() const { return !working_cq_.load(std::memory_order_relaxed) && cq_; }
  void break_cq();
  // Counts, and unlocks data_mutex_.
  Error finish_empty_dequeue();
  int request_notification() {
    return ibv_req_notify_cq(cq_.get(), solicited_only_.load(std::memory_order_relaxed) ? 1 : 0);
  }
  bool grow_pending();
  // INVALID_PARAMETER, or INSUFFICIENT_RESOURCES where so many could not wait for want of memory.
  Result<> allow_threshold(uint32_t threshold);
  bool is_full() const { return pending_head_ - pending_tail_ > pending_mask_; }
  // The size of a CQ for an EVD with this number of events.
  int entries_for(uint32_t min_qlen) const;
  static int32_t spare_for(const ibv_cq& cq, uint32_t min_qlen);
  Result<> resize_cq(uint32_t min_qlen);
  void wake();
  void notify();
  int channel_fd() const { return channel_ ? channel_->fd : -1; }
  Result<ibv_comp_channel*> open_channel();
  bool arm_for_cno();
  void trigger_cno();
  void resume_cno(uint32_t known);
  void notify_cno_of_more_than(uint32_t known);
  void leave_cno();

  std::atomic<uint32_t> qlen_;
  const uint32_t streams_;
  unsigned int unusual_wc_flags_ = 0;  // of a receive that is more than that

  WakeUp wake_up_;    // while there is no channel_
  UniqueFd wake_fd_;  // beside one; made when first slept here
  // Destroyed in reverse order: the CQ goes before the channel it reports to. Null where there is no CQ, or where that
  // reports to the channel that EVDs share.
  verbs::CompChannel channel_;
  verbs::Cq cq_;
  std::atomic<ibv_cq*> working_cq_ = nullptr;  // null also once it could not be polled or armed
  std::atomic<uint32_t> to_flush_ = 0;         // entries, of all EPs that have asked
  std::atomic<int32_t> spare_ = 0;             // entries; below 0 after the CQ was resized to fewer than are taken
  uint32_t unacknowledged_ = 0;                // notifications read from channel_

  // Completions taken off the CQ and not delivered yet: a ring that is small until more wait.
  std::unique_ptr<ibv_wc[]> pending_;
  uint32_t pending_mask_ = 0;
  uint32_t pending_head_ = 0;
  uint32_t pending_tail_ = 0;
  uint32_t signals_ = 0;      // completions taken from the CQ that may wake a thread
  uint32_t cno_signals_ = 0;  // of these, those the CNO has been told of

  EvdConfig config_ = EvdConfig::kNotify;
  uint32_t configured_ = 0;  // EPs that agreed on it
  std::atomic<bool> solicited_only_ = false;

  // Written by the thread that dequeues or waits, except kConnectionCallback, which is under the control mutex.
  EvdCounterSet counters_;
  CounterBases<kEvdCounters> counter_bases_{};

  SoftwareQueue software_;  // urgent: there are rings to be flushed
  FlushList unflushed_;
  SmallMutex data_mutex_;
  std::atomic<Waiter> waiter_ = Waiter::kNone;
  std::atomic<bool> sleeping_ = false;
  std::atomic<bool> unwaitable_ = false;
  std::atomic<bool> aborted_ = false;
  int64_t spin_ns_;

  // Before data_mutex_ in the order of locks. An EVD without a CNO never takes it on the data path.
  mutable std::mutex cno_mutex_;
  std::atomic<Cno*> cno_ = nullptr;
  bool enabled_ = true;
  std::atomic<uint32_t> lost_ = 0;
  NotifierLink notifier_link_;  // the notifier's
};

}  // namespace dapple::dat
