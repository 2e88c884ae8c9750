// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The library's one background thread. It serves connection events of all IAs, asynchronous device events, and
// time-outs of connections. It runs while an IA is open.
#pragma once

#include "ibverbs-glue/verbs.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/silent_thread.hpp"
#include "udapl/core/unique_fd.hpp"

namespace dapple::udapl {

class Object;

class ConnectionManager {
 public:
  static ConnectionManager& instance();
  // True while an IA is open. Any thread, without the lock.
  static bool in_use() { return in_use_.load(std::memory_order_relaxed); }

  // The entry of an Ep or a UdConnection in the manager's lists. It holds all the memory that the lists need, so
  // neither a time-out nor a notification from the data path can fail. The constructor throws std::bad_alloc; the
  // destructor leaves the lists.
  class Client {
   public:
    explicit Client(Object& owner);
    ~Client() { leave(); }
    // Cancels the deadline and a call that was asked for.
    void leave();
    // Has on_deadline() called at that time of the monotonic clock; kNever cancels the call. There is one deadline.
    void set_deadline(int64_t deadline_ns);
    bool has_deadline() const { return deadline_ns_ != kNever; }
    // From the data path, any thread, no lock needed: the connection's on_attention() runs soon on the manager's
    // thread.
    void notify();

   private:
    friend class ConnectionManager;
    using Deadlines = std::set<std::pair<int64_t, Client*>>;
    Object& owner_;
    int64_t deadline_ns_ = kNever;
    Deadlines::node_type deadline_;  // the node of the set, kept here while no deadline is set
    Client* next_ = nullptr;
    bool wants_attention_ = false;
  };

  // Callers hold the control mutex.

  // Starts the thread for the first IA.
  Result<> acquire();
  // Ends the thread after the last IA. Releases the mutex to join, and leaves it released.
  void release(std::unique_lock<std::mutex>& control);

  // A new id whose events are the object's; null with errno set on failure.
  verbs::CmId new_id(Object& owner, rdma_port_space space = RDMA_PS_TCP) const {
    return verbs::create_cm_id(channel_.get(), &owner, space);
  }
  // Listens for the asynchronous events of a device; several IAs may share one context.
  Result<> watch(ibv_context* context);
  void unwatch(ibv_context* context);
  // Serves the asynchronous events that the devices have reported until now.
  void serve_device_events();
  // The completion channel that the EVDs of a watched device share. The manager's thread takes its notifications and
  // tells the EVD, which is the CQ's context; so such an EVD may sleep without a descriptor of its own.
  Result<ibv_comp_channel*> shared_channel(ibv_context* context);

 private:
  ConnectionManager() = default;
  Result<> start();
  void run(uint32_t generation);
  void serve_connection_events();
  void serve_shared_channels();
  void serve_device_event(ibv_context* context, ibv_async_event& event);
  void report_catastrophe(ibv_context* context, int reason);
  void serve_attention();
  void serve_deadlines();
  void wake();

  // Bounds what the thread polls, so that it never allocates.
  static constexpr size_t kMaxContexts = 64;

  struct Watch {
    uint32_t users = 0;
    bool broken = false;             // the device is gone, and no more events can be read
    bool told = false;               // its IAs have got the event of a fatal error
    verbs::CompChannel completions;  // shared by EVDs
    bool lost = false;               // no more notifications will come on completions
  };

  static inline constinit std::atomic<bool> in_use_ = false;
  uint32_t users_ = 0;
  uint32_t generation_ = 0;  // of the present thread; an older thread sees the difference and ends
  pid_t pid_ = 0;            // the process that has the thread
  verbs::EventChannel channel_;
  UniqueFd wake_fd_;
  SilentThread thread_;
  std::map<ibv_context*, Watch> watched_;
  Client::Deadlines deadlines_;

  std::mutex attention_mutex_;   // a leaf in the order of locks: the data path takes it
  Client* attention_ = nullptr;  // the list goes through Client::next_
};

}  // namespace dapple::udapl
