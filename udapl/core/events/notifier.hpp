// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The implementation of a CNO: an epoll set of the completion channels of its EVDs and of an eventfd for events made by
// software. The set's own descriptor is readable while a notification waits, so it serves waiters, the agent's thread
// and a consumer's poll() alike.
//
// Threads: internally locked. A closed notifier lives on while a thread is still in a call. Order of locks: an EVD's
// cno_mutex_, the notifier's mutex, an EVD's data path mutex.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "udapl/core/error.hpp"
#include "udapl/core/silent_thread.hpp"
#include "udapl/core/unique_fd.hpp"

namespace dapple::udapl {

class Evd;

// DAT_OS_WAIT_PROXY_AGENT. If function is null, there is no agent.
struct WaitAgent {
  void (*function)(void* instance_data, void* evd) = nullptr;
  void* instance_data = nullptr;
};

// An EVD's place in the list of those that have triggered, and in that of those that the agent's thread passes on.
struct NotifierLink {
  Evd* next = nullptr;
  bool triggered = false;
  Evd* next_passed = nullptr;
  bool passed = false;
};

class Notifier : public std::enable_shared_from_this<Notifier> {
 public:
  // Joins the threads that close() has left. Does nothing in a child of fork(), where those threads do not exist.
  using Threads = std::list<SilentThread>;
  static void join(Threads& threads);

  static Result<std::shared_ptr<Notifier>> create();

  int fd() const { return set_.get(); }
  uint32_t waiters() const {
    std::lock_guard guard(mutex_);
    return waiters_;
  }
  // False also if all of them are about to return because the last EVD was freed.
  bool has_blocked_waiter() const {
    std::lock_guard guard(mutex_);
    return waiters_ != (deserted_epoch_ == epoch_ ? stale_ : 0);
  }
  WaitAgent agent() const;
  // Starts the agent's thread for the first agent. Returns when no call of the former agent is running, unless that
  // call itself changes the agent. Throws std::bad_alloc.
  Result<> set_agent(const WaitAgent& agent);

  // Counts the EVDs. freed: after the last EVD is freed, all waiters return.
  void add_user();
  void drop_user(bool freed);
  // Between watch() and unwatch() the EVD may trigger. channel_fd: -1 for an EVD without a channel of its own.
  // unwatch() drops the EVD's notifications.
  Result<> watch(Evd& evd, int channel_fd);
  void unwatch(Evd& evd, int channel_fd);
  void trigger(Evd& evd);

  // timeout is in microseconds. The result is the EVD that has triggered; null if the CNO or the last of its EVDs was
  // freed. QUEUE_EMPTY when the time has expired (uDAPL 1.2 dat_cno_wait; not TIMEOUT_EXPIRED).
  Result<Evd*> wait(uint32_t timeout_us);
  // The same without waiting.
  Result<Evd*> take();

  // Releases all waiters, and tells the agent if asked to. The agent's thread ends and is moved to `threads`; the
  // caller joins it without holding a lock. A thread that calls this itself is left alone.
  void close(bool tell_agent, Threads& threads);

 private:
  struct Private {};

 public:
  explicit Notifier(Private) {}

 private:
  // A thread's place among the waiters. The destructor releases it, even if pthread_cancel() ends the wait, and takes
  // the lock again if it was released.
  struct Waiting {
    Waiting(Notifier& on, std::unique_lock<std::mutex>& held);
    ~Waiting();
    Notifier& notifier;
    std::unique_lock<std::mutex>& lock;
    uint64_t epoch;  // of the last change that it has seen
  };

  bool in_agent_thread() const { return !agent_thread_.empty() && agent_thread_.front().is_current(); }
  // Asserts the conditions that hold while the lock is free.
  void assert_consistent() const;
  void collect();
  void push(Evd& evd);
  Evd* pop();
  void pass_on(Evd& evd);
  Evd* take_passed();
  void renew();
  void settle();
  void run_agent();
  void call_agent(std::unique_lock<std::mutex>& lock, Evd* evd);

  mutable std::mutex mutex_;
  UniqueFd set_;
  UniqueFd triggered_fd_;  // in set_; readable while the list below is not empty
  Evd* first_ = nullptr;
  Evd* last_ = nullptr;
  uint32_t users_ = 0;  // EVDs
  bool closed_ = false;

  // Waiters sleep on pass_fd_, and while there is no agent also on set_. pass_fd_ signals changes, and EVDs that the
  // agent's thread has taken and passes on: passed_ is the first of them.
  UniqueFd pass_fd_;
  Evd* passed_ = nullptr;
  uint32_t waiters_ = 0;
  uint32_t stale_ = 0;           // waiters that have not seen the current epoch
  uint64_t epoch_ = 0;           // counts the changes that every waiter must see
  uint64_t deserted_epoch_ = 0;  // the epoch in which the last EVD was freed

  WaitAgent agent_;
  UniqueFd agent_fd_;  // wakes the agent's thread after a change
  Threads agent_thread_;
  pid_t agent_pid_ = 0;
  bool calling_ = false;        // the agent is being called
  uint64_t calls_ = 0;          // of agents, including that one
  bool tell_deserted_ = false;  // the agent's thread must report that the last EVD was freed
  bool told_ = false;           // the agent knows that no EVD is left: close() does not tell it again
  bool tell_closed_ = false;
  std::condition_variable called_;
};

}  // namespace dapple::udapl
