// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This process' end of the network: its slot, its queue pairs, and their progress.
//
// Progress is made by the application's threads that poll a completion queue and find it empty, and by one background
// thread when no thread polls. Each thread that called a queue pair's engine under its lock calls settle() before it
// releases the lock, and deliver() afterwards; the short ways of plain Sends (roce/at_once.hpp) leave out what they do
// not need of both.
//
// A child of fork() cannot use the parent's node: it closes the descriptors, refuses calls on the parent's contexts,
// and makes a node of its own when it opens a device.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include <atomic>
#include <memory>

#include "provider/common/mutex.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/member/problem.hpp"
#include "provider/soft/links/links.hpp"
#include "provider/soft/locks/brief_mutex.hpp"
#include "provider/soft/objects/gid_uses.hpp"
#include "provider/soft/placement/publication.hpp"
#include "provider/soft/progress/fetch_ahead.hpp"
#include "provider/soft/progress/multicast.hpp"
#include "provider/soft/progress/network_turn.hpp"
#include "provider/soft/progress/qp_table.hpp"
#include "provider/soft/progress/ring_turn.hpp"
#include "provider/soft/progress/timers.hpp"
#include "provider/soft/progress/turn_clock.hpp"
#include "provider/soft/wire/batch_pool.hpp"
#include "provider/soft/wire/outages.hpp"
#include "provider/soft/wire/wire.hpp"

namespace dapple::soft {

// The way of a queue pair's packets.
struct ChosenWay {
  RingTo* ring = nullptr;  // null: UDP
  uint32_t place = 0;      // in the table of ways; 0: no way is chosen
};

// Internally locked.
class Node final : public ArrivalSink {
 public:
  // The process' node, made at the first call; it stays for as long as the process. Null on failure, and `problem` has
  // the reason.
  static Node* get(Problem& problem);
  // Counts forks; an object of another generation belongs to the parent.
  static uint32_t generation() { return generation_.load(std::memory_order_relaxed); }

  Node(std::unique_ptr<DaemonLink> link, std::unique_ptr<Outages> outages, std::unique_ptr<Wire> wire,
       const Slot& slot);

  DaemonLink& link() { return *link_; }
  Wire& wire() { return *wire_; }
  Multicast& multicast() { return multicast_; }
  // Chooses the way of the packets to a peer. leave_way() ends its use.
  ChosenWay choose_way(const Path& path);
  // The same for a queue pair without a peer.
  ChosenWay choose_way_of_datagrams();
  void leave_way(ChosenWay way);
  // The memory and the queue pairs that peers of this host reach without this process' help.
  Publication& publication() { return publication_; }
  GidUses& gid_uses() { return gid_uses_; }
  // True if the device's port is down by plan.
  bool port_is_down(uint32_t device_index) const { return outages_ != nullptr && outages_->is_down(device_index); }

  // Gives a queue pair its number. 0, or ENOMEM.
  int add(Qp& qp);
  // The queue pair has its engine: from now on it receives.
  static void open(Qp& qp) { QpTable::open(qp); }
  // Afterwards the queue pair receives nothing, no peer copies for it, and only the caller's thread uses it. The caller
  // holds no lock.
  void remove(Qp& qp);
  // The same for all queue pairs that the program has left in a device that it closes.
  void remove_all(Context& context);

  // Under the queue pair's lock, after calls of its engine: sends, and handles its state and its deadline.
  void settle(Qp& qp, roce::Now now);
  // The same after a change of its state. Before RTS it has nothing to send.
  void settle_state(Qp& qp);
  // The same after the application has posted requests.
  void settle_posts(Qp& qp);
  // Under the queue pair's lock: posts and sends the first requests of a list, which is not empty, as far as their
  // packets can go to the peer's ring at once. Returns the first other one, or null. Call wake_if_due() after the lock.
  ibv_send_wr* send_at_once(Qp& qp, ibv_send_wr* requests);
  void wake_if_due() {
    if (wake_due_.load(std::memory_order_relaxed) && wake_due_.exchange(false)) wake();
  }
  // After the lock: tells the application of completions and events. The queue pair must be pinned or the caller's own.
  void deliver(Qp& qp);

  // Called by a polling thread of the application: makes progress, unless another thread does so now.
  void progress();
  // Called by a thread of the application: processes all packets that have arrived, acknowledgements included.
  void catch_up();
  // At the end of the process: sends the acknowledgements that it still holds.
  void leave();
  // The application is about to wait for an event: the background thread takes over at once.
  void expect_no_polls();

  // From now on until remove(), an open device gets changes of its netdev, and may have objects. False without memory.
  bool add(Context& context);
  void remove(Context& context);
  // If there are changes, another thread looks at them.
  void look_for_changes();

  // ArrivalSink, for the wire.
  void arrived(const Arrival& arrival) override;
  void much_arrived() override { finish_touched(); }

  static roce::Time now() { return now_ns(); }

 private:
  static constexpr uint32_t kMaxTouched = 64;

  static void fork_prepare();
  static void fork_parent();
  static void fork_child();
  bool open_links(const Slot& slot, Problem& problem);
  bool start_background(Problem& problem);
  static void* run_background(void* node);

  // The thread that makes progress: one that polls, or any other.
  enum class Worker : uint8_t { kPoller, kOther };
  // Under receive_mutex_. True if there was work.
  bool work(Worker worker);
  void receive_into(Qp& qp, const Arrival& arrival);
  void receive_reference(Qp& qp, const Arrival& arrival);
  // A packet that needs nothing but its execution. False: arrived() goes on with it.
  bool receive_at_once(const Arrival& arrival);
  bool finish_at_once(Qp& qp);
  void hand_out(Qp& qp, const Arrival& arrival);
  void hand_out_to_group(const Arrival& arrival);
  void touch(Qp& qp);
  void finish_touched();
  // The two halves of settle(). The first is true if there is more to send.
  bool transmit(Qp& qp, roce::Now now);
  bool transmit_to_ring(Qp& qp, roce::Now now);
  void note_answer(Qp& qp);
  void schedule(Qp& qp, roce::Time deadline);
  void attend(Qp& qp, bool more);
  bool must_send_now(Qp& qp, roce::Owes owes);
  bool expects_answer(Qp& qp);
  bool hold(Qp& qp);
  void send_held_in_time();
  void send_held_alone();
  void send_held(roce::Owes least);
  bool attend_links();
  bool receive_packets();
  bool expire_due();
  bool run_ready();
  // False without memory.
  static bool prepare_outages(std::unique_ptr<Wire>& wire, std::unique_ptr<Outages>& outages, Problem& problem);
  void deliver_planned(Qp& qp, uint32_t events);
  void fail_by_plan(Qp& qp);
  void take_port_down(Context& context);
  void make_ready(Qp& qp);
  void forget_ready(Qp& qp);
  void wake();
  void count(Qp& qp);
  void count(const RingTurn::Placements& placed);

  void learn_poll_interval(roce::Time took);
  bool polled_since(uint32_t polls, roce::Time time);
  bool polled_meanwhile();
  bool step_aside(roce::Time& aside);
  void let_others_work();
  void take_over();
  // True if packets have come, or a thread polls that would take them.
  bool sleep_until(roce::Time when, bool for_packets);
  void look_after_link();
  void attend_link();
  static void* run_link(void* node);
  void tell_changes();
  [[noreturn]] void background();

  static std::atomic<uint32_t> generation_;

  const std::unique_ptr<DaemonLink> link_;
  const std::unique_ptr<Outages> outages_;  // null without a plan of them
  const std::unique_ptr<Wire> wire_;
  QpTable qps_;
  Timers timers_;
  BatchPool batches_;
  Multicast multicast_;
  GidUses gid_uses_;
  WayTable ways_;
  Publication publication_;
  SameHostLinks links_;
  SlotCounters& counters_;

  BriefMutex receive_mutex_{LockRank::kReceiving};
  // Under receive_mutex_: the packet that has arrived, and the queue pairs that this batch of packets was for. A local
  // packet would be cleared for each arrival, although parse() sets all that its opcode has.
  roce::Packet packet_;
  Qp* touched_[kMaxTouched];
  uint32_t touched_count_ = 0;
  Worker worker_ = Worker::kOther;
  TurnClock clock_;
  uint32_t same_host_turns_ = 0;           // turns of work() in which packets of this host are more likely than others
  uint32_t turns_ = 0;                     // without a look at the network
  std::atomic<uint32_t> polled_turns_{0};  // by threads that poll; posting threads read it
  uint64_t fetched_bytes_ = 0;             // of peers
  uint64_t arrivals_ = 0;                  // packets that have arrived
  AheadOfItsPacket ahead_;                 // see FetchAhead
  std::atomic<bool> links_due_{false};     // links_ has something to attend to

  // Under receive_mutex_: the queue pairs whose acknowledgements wait. remove() sees to it that they go in time.
  static constexpr uint32_t kMaxHeld = 64;
  Qp* held_[kMaxHeld];
  std::atomic<uint32_t> held_count_{0};
  uint32_t held_polls_ = 0;    // since the first of them was held
  uint32_t answer_polls_ = 0;  // since an answer was expected last

  Mutex ready_mutex_{LockRank::kReady};
  Qp* first_ready_ = nullptr;
  Qp* last_ready_ = nullptr;
  std::atomic<bool> any_ready_{false};

  Mutex contexts_mutex_{LockRank::kContexts};
  Context* first_context_ = nullptr;

  // The background thread's own: what a turn of work() in vain takes, and the time in which a program that polls often
  // has polled at least once.
  roce::Time turn_in_vain_ = 0;
  roce::Time poll_interval_ = 0;
  bool was_aside_ = false;  // since it took over last

  int wake_fd_ = -1;
  std::atomic<bool> wake_due_{false};
  std::atomic<uint32_t> polls_{0};                    // calls of progress()
  std::atomic<uint32_t> polls_without_successor_{0};  // polls_ at the last expect_no_polls()
  std::atomic<bool> poller_works_{false};             // a thread of the application is in progress()
  std::atomic<roce::Time> planned_wake_{0};           // when the background thread wakes by itself
  std::atomic<bool> steps_aside_{false};              // it does not look at packets meanwhile
  // When the background thread looks after the link again. 0: when the link has an event. roce::kNever: run_link() is
  // at work, and sets it.
  std::atomic<roce::Time> link_retry_{0};
};

}  // namespace dapple::soft
