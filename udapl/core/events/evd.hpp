// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Event dispatcher: merges the completions of one CQ with events that software makes.
//
// Threads: internally locked on any IA. One thread at a time may wait, and no other thread may dequeue meanwhile (uDAPL
// 2.0 6.3.2: INVALID_STATE).
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <optional>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/counters.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/event.hpp"
#include "udapl/core/events/notifier.hpp"
#include "udapl/core/events/software_queue.hpp"
#include "udapl/core/events/wake_up.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/object.hpp"
#include "udapl/core/queue/completion_ring.hpp"
#include "udapl/core/queue/flush_list.hpp"
#include "udapl/core/unique_fd.hpp"

namespace dapple::udapl {

class Cno;
class Ep;
struct WorkRequest;

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

// DAT_EVD_STATE_CONFIG_*: the receive completions that notify.
enum class EvdConfig : uint8_t { kNotify, kSolicited, kThreshold };

class Evd : public Object {
 public:
  static constexpr Kind kKind = Kind::kEvd;
  static constexpr uint32_t kInfinite = ~0U;  // microseconds
  static constexpr uint32_t kSpare = 16;      // entries of a CQ beyond those that the consumer asked for

  // min_qlen > 0. The caller holds the control mutex.
  static Result<Evd*> create(Ia& ia, uint32_t min_qlen, uint32_t streams);
  // INVALID_STATE while an object reports to this EVD or a thread waits. Connection requests that were never dequeued
  // are destroyed with it. The caller holds the control mutex.
  static Result<> free(Evd& evd);

  uint32_t qlen() const { return qlen_.load(std::memory_order_relaxed); }
  uint32_t streams() const { return streams_; }
  bool has(uint32_t streams) const { return (streams_ & streams) == streams; }
  bool waitable() const { return unwaitable_.load(std::memory_order_relaxed) % 2 == 0; }
  ibv_cq* cq() const { return cq_.get(); }

  // Stores an event made by software. On a full queue the event is dropped and the IA's asynchronous EVD gets an event.
  bool post(Event event);
  // The same for an event that comes after all completions that the device has made.
  bool post_after_completions(Event event);
  // Counts one more lost event. Returns the number of lost events since the EVD was made.
  uint32_t count_lost() { return lost_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // dat_evd_post_se.
  Result<> post_software(void* pointer);

  // The API's function takes an event through sink(event), or through sink.completion(request, length) when it is a
  // successful DTO with a fast request; then no Event is built. Inline, in evd_take.hpp.
  //
  // QUEUE_EMPTY if there is none.
  template <class Sink>
  Result<> dequeue(Sink sink);
  // timeout is in microseconds. more: the number of events left after this one, also on TIMEOUT_EXPIRED.
  template <class Sink>
  Result<> wait(uint32_t timeout_us, uint32_t threshold, Sink sink, uint32_t& more);

  // INVALID_STATE if more events wait than would fit, or if the CQ cannot shrink to so few entries. Traffic may
  // continue. The caller holds the control mutex. Throws std::bad_alloc.
  Result<> resize(uint32_t min_qlen);

  // The notification that an EP needs of its receives; all EPs of an EVD must agree. can_configure() is false if EPs,
  // apart from this number of leaving ones, need another notification; then configure() must not be called. The caller
  // holds the control mutex.
  bool can_configure(EvdConfig config, uint32_t leaving) const { return configured_ <= leaving || config == config_; }
  void configure(EvdConfig config);
  void unconfigure();
  // Count the EPs whose requests complete here. Each such completion wakes, so while there are such EPs the device must
  // notify of every completion. The caller holds the control mutex.
  void add_requester();
  void drop_requester();
  EvdConfig config() const { return config_; }

  void set_waitable(bool waitable);
  // Ends a wait with DAT_ABORT, before the EVD is destroyed.
  void abort();
  bool has_waiter() const { return waiter_.load(std::memory_order_seq_cst) != Waiter::kNone; }

  // Flushes the requests that the device has left in this ring, after all completions that the device made. Any thread
  // may call it once the device makes no more completions for the ring.
  void flush_later(FlushLink& link);

  // Takes all completions off the CQ without delivering them, so that forgetting an endpoint finds room. Fails without
  // memory.
  Result<> empty_cq();
  // Forgets the completions of an endpoint whose queue pair is gone.
  void forget_completions(Ep& ep);
  // Forgets these completions and the reports about the endpoint's connection, because the endpoint is destroyed.
  void forget(Ep& ep);
  // Forgets the latter alone.
  void forget_reports(const Ep& ep);
  // Forgets the reports about the endpoint's exchanges for datagrams, because they are abandoned.
  void forget_datagrams(const Ep& ep);
  // Forgets the asynchronous errors of an object that is destroyed.
  void forget_errors(const Object& object);
  // The CNO to notify of events while no thread waits here, or null. For the first two functions the caller holds the
  // control mutex.
  Result<> set_cno(Cno* cno);
  Result<> set_enabled(bool enabled);
  Cno* cno() const { return cno_.load(std::memory_order_acquire); }
  bool enabled() const;
  // The CNO's notifier calls this with its lock held. It takes the notifications off the channel. True if the CNO must
  // report this EVD.
  bool serve_channel();
  // True if the device is gone. The CQ then sends no more notifications.
  bool cq_broken() const { return !working_cq_.load(std::memory_order_relaxed) && cq_; }
  // -1 for an EVD without a channel of its own.
  int channel_fd() const { return channel_ ? channel_->fd : -1; }
  // The connection manager calls this with the control mutex held, after a notification on the channel that EVDs share.
  void on_notification();
  // The connection manager calls this with the control mutex held, when no more notifications will come on that
  // channel.
  void on_lost_channel();
  NotifierLink& notifier_link() { return notifier_link_; }

  EvdCounterSet& counters() { return counters_; }
  const EvdCounterSet& counters() const { return counters_; }

  // Takes completions off the CQ without delivering them, until as many wait as the EVD was made for.
  void reap();

  // A suppressed request that is signalled takes one of the CQ's spare entries, because its consumer does not count it;
  // without this limit the CQ would overflow. False if none is left. Any thread may call it.
  bool take_spare();
  // Enlarges the CQ for this many requests that may all be suppressed: they complete silently on success, but each
  // makes a completion when it is flushed. A device that cannot resize keeps its CQ. Fails without memory. Any thread
  // may call it.
  Result<> make_room_to_flush(uint32_t num_requests);
  void give_back_room_to_flush(uint32_t num_requests) {
    [[maybe_unused]] const uint32_t before = to_flush_.fetch_sub(num_requests, std::memory_order_relaxed);
    assert(before >= num_requests);
  }
  void give_back_spare() {
    [[maybe_unused]] const int32_t before = spare_.fetch_add(1, std::memory_order_relaxed);
    assert(before < static_cast<int32_t>(kSpare));
  }

 private:
  friend class Arena<Evd>;
  Evd(Ia& ia, uint32_t qlen, uint32_t streams);
  ~Evd();
  Result<> open_queues(uint32_t min_qlen);
  // Counts an event made by software and wakes its reader, or reports that it did not fit. Returns `fits`.
  bool stored(bool fits);
  // True if events other than completions may come.
  bool has_software_events() const { return streams_ & ~uint32_t{kEvdDto | kEvdRmrBind}; }

  enum class Waiter : uint8_t { kNone, kWaiting, kLeaving };
  // True if a thread will still see an event that is stored now.
  bool waited_on() const { return waiter_.load(std::memory_order_seq_cst) == Waiter::kWaiting; }
  uint32_t available() const { return software_.count() + completions_.count(); }
  // The number of events that wait; more than any threshold when there are rings to flush.
  uint32_t available_or_urgent() const { return software_.count_or_urgent() + completions_.count(); }

  // From the CQ to the consumer. complete_batch() moves completions from the CQ to completions_, deliver_next() moves
  // an event from there or from software_ to the consumer. The caller holds data_mutex_.
  //
  // False if the CQ has no completion that the consumer will see, or if completions_ cannot grow for one.
  bool complete_batch();
  // False if no event waits.
  bool deliver_next(Event& out);
  template <class Sink>
  bool deliver_next_to(Sink sink);
  template <class Sink>
  bool deliver_event_to(Sink sink);
  // complete_batch() when no completion waits, except that a single completion may go to the sink at once.
  enum class Completed : uint8_t { kNothing, kWaiting, kDelivered };
  template <class Sink>
  Completed complete_batch_to(Sink sink);
  // deliver_next_to() and complete_batch_to() for a sink whose type is erased.
  struct ErasedSink {
    void* sink;
    bool (*deliver_next_to)(Evd&, void* sink);
    Completed (*complete_batch_to)(Evd&, void* sink);
  };
  // Their parts.
  int poll_cq(ibv_wc* out, int capacity);
  int poll_into_empty();
  bool keep_polled(int count) { return count != 0 && keep_batch(count); }
  bool keep_batch(int count);
  bool complete(ibv_wc& completion);
  bool complete_slow(const ibv_wc& completion, WorkRequest& request);
  bool is_fast(const ibv_wc& completion, const WorkRequest& request) const;
  template <class Sink>
  void report_fast(const ibv_wc& completion, const WorkRequest& request, Sink sink);
  void report(const ibv_wc& completion, Event& out);

  void flush_rings();
  // Waits, after the caller's first look. signals: the value of signals_ at that look; empty if there was none.
  Result<> wait_for_events(uint32_t timeout_us, uint32_t threshold, std::optional<uint32_t> signals,
                           const ErasedSink& sink, uint32_t& more);
  void learn_to_spin(int64_t waited_ns);
  void leave_wait(uint32_t more);
  // A thread's place as the waiter. The destructor releases it, even if pthread_cancel() ends the wait.
  struct Leaving {
    Evd& evd;
    const uint32_t& more;
    ~Leaving() { evd.leave_wait(more); }
  };
  // The limits of a thread's wait, and the state that the thread has seen.
  struct Wait {
    int64_t deadline_ns;
    uint32_t threshold;
    uint32_t waitable;  // the value of unwaitable_ with which the wait goes on
    uint32_t signals;   // the value of signals_ at the first look
  };
  Result<> sleep(const Wait& wait);
  Result<> sleep_without_channel(const Wait& wait);
  void take_notification();
  bool arm(const Wait& wait);
  bool look_at_all(Wait& wait, const ErasedSink& sink, uint32_t& more);
  bool deliver_if_enough(uint32_t threshold, const uint32_t* unless_signals, const ErasedSink& sink);
  bool heard(uint32_t signals) const { return signals != signals_ || software_.any(); }
  // Every call that would poll or arm the CQ returns INTERNAL_ERROR from now on.
  void break_cq();
  // Counts the wait and unlocks data_mutex_.
  Error finish_empty_dequeue();
  void choose_notifications();
  int request_notification() {
    return ibv_req_notify_cq(cq_.get(), solicited_only_.load(std::memory_order_relaxed) ? 1 : 0);
  }
  // Capacity of completions_: qlen() for undelivered events (see reap() and wait()) plus a full CQ, so that destroying
  // an endpoint can always drain the CQ.
  uint32_t most_completions() const { return qlen() + static_cast<uint32_t>(cq_->cqe) + CompletionRing::kBatch; }
  // INVALID_PARAMETER, or INSUFFICIENT_RESOURCES without memory for that many pending events.
  Result<> allow_threshold(uint32_t threshold);
  // The size of a CQ for an EVD with this number of events.
  int entries_for(uint32_t min_qlen) const;
  static int32_t spare_for(const ibv_cq& cq, uint32_t min_qlen);
  Result<> resize_cq(uint32_t min_qlen);
  void wake();
  void notify();
  Result<ibv_comp_channel*> open_channel();
  bool arm_for_cno();
  void trigger_cno();
  void resume_cno(uint32_t known);
  void serve_notification();
  void notify_cno_of_more_than(uint32_t known);
  void leave_cno();

  std::atomic<uint32_t> qlen_;
  const uint32_t streams_;
  unsigned int slow_wc_flags_ = 0;  // flags of a receive whose success takes the slow path

  WakeUp wake_up_;    // only without a channel_
  UniqueFd wake_fd_;  // used beside channel_; made at the first sleep
  // Destroyed in reverse order: the CQ is destroyed before the channel it reports to. channel_ is null without a CQ,
  // and if the CQ reports to the channel that EVDs share.
  verbs::CompChannel channel_;
  verbs::Cq cq_;
  std::atomic<ibv_cq*> working_cq_ = nullptr;  // null also after a failure to poll or arm it
  std::atomic<uint32_t> to_flush_ = 0;         // entries that all EPs together have asked for
  std::atomic<int32_t> spare_ = 0;             // entries; negative after the CQ was resized to fewer than are taken
  uint32_t unacknowledged_ = 0;                // notifications read from channel_

  CompletionRing completions_;  // with a CQ only
  uint64_t delivered_ = 0;      // completions that were delivered while events made by software waited
  uint32_t signals_ = 0;        // the number of completions taken from the CQ that may wake a thread
  uint32_t cno_signals_ = 0;    // the part of them that the CNO knows of

  EvdConfig config_ = EvdConfig::kNotify;
  uint32_t configured_ = 0;  // EPs that have agreed on this notification
  uint32_t requesters_ = 0;
  std::atomic<bool> solicited_only_ = false;

  // The thread that dequeues or waits writes these counters, except kConnectionCallback, which the control mutex
  // guards.
  EvdCounterSet counters_;

  SoftwareQueue software_;  // urgent: some rings must be flushed
  FlushList unflushed_;
  SmallMutex data_mutex_;
  std::atomic<Waiter> waiter_ = Waiter::kNone;
  std::atomic<bool> sleeping_ = false;
  // Odd while no thread may wait. Each call of set_waitable(false) makes a new value, so a waiting thread finds out
  // about the call even if another one has made the EVD waitable again.
  std::atomic<uint32_t> unwaitable_ = 0;
  std::atomic<bool> aborted_ = false;
  int64_t spin_ns_;

  // Comes before data_mutex_ in the order of locks. An EVD without a CNO never locks it on the data path.
  mutable std::mutex cno_mutex_;
  std::atomic<Cno*> cno_ = nullptr;
  bool enabled_ = true;
  std::atomic<uint32_t> lost_ = 0;
  NotifierLink notifier_link_;  // guarded by the notifier's lock
};

}  // namespace dapple::udapl
