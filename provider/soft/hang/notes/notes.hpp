// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Notes of a program's calls for its queues, under dapple-run --hang or --check, so that a report can say why a thread
// waits in vain.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/stack.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft::hang {

using check::KnownStack;
using check::ReportedStack;
using check::Stack;

// The last call of ibv_req_notify_cq().
struct Arm {
  Stack stack;
  uint32_t there = 0;  // completions that the queue had then
};

// The events of one object that the program has got.
struct GotEvents {
  static constexpr size_t kMax = 8;
  uint64_t count = 0;
  std::deque<Stack> last;  // at most kMax

  void add(const Stack& stack) {
    count++;
    last.push_back(stack);
    if (last.size() > kMax) last.pop_front();
    assert(last.size() <= kMax && last.size() <= count);
  }
};

struct CqNote {
  Stack made;
  std::optional<Arm> arm;
  GotEvents got;
  GotEvents got_errors;  // IBV_EVENT_CQ_ERR
  bool ends = false;     // the program destroys it now
};

struct NotedSend {
  KnownStack stack;
  bool signaled = true;
};

// The requests and receives that the change to RESET has dropped.
struct Lost {
  Stack reset;
  uint64_t sends = 0, receives = 0;
  std::optional<Stack> send, receive;  // the posts of the oldest of each
  uint64_t naks = 0;                   // RNR NAKs that the queue pair had sent by then
};

struct QpNote {
  Stack made;
  // The last ones since the queue pair was in RESET: as many as its queues have room for, and those in a post.
  std::deque<NotedSend> sends;
  size_t in_post = 0;  // sends of which the device has not yet said whether it takes them
  std::deque<KnownStack> receives;
  std::optional<Lost> lost;  // by the last change to RESET
  GotEvents got;
  bool ends = false;
};

struct SrqNote {
  Stack made;
  std::optional<KnownStack> receive;  // the last post
  std::optional<Stack> limit;         // the last call that armed the limit
  uint32_t limit_value = 0;
  GotEvents got;  // of the limit
  bool ends = false;
};

// A thread that has polled in vain since its last completion.
struct Poller {
  std::vector<const ibv_cq*> cqs;  // at most kMax
  static constexpr size_t kMax = 16;
  uint64_t since_ns = 0;
  uint64_t last_ns = 0;
};

// Internally locked; the lock is a leaf. Objects are named by their addresses.
class Notes {
 public:
  // Lives as long as the process. Null unless the program runs under dapple-run --hang, --check or --enumerate.
  static Notes* get();

  struct Tables {
    std::map<Cq*, CqNote> cqs;
    std::map<Qp*, QpNote> qps;
    std::map<Srq*, SrqNote> srqs;
    std::map<int, Poller> pollers;  // by thread
  };

  // Calls change(tables) under the lock.
  template <typename Change>
  void change(Change change) {
    const std::lock_guard lock(mutex_);
    change(tables_);
  }
  // The program is about to destroy the object: waits until nobody reads it.
  template <typename Mark>
  void end(Mark mark) {
    for (;; wait_a_little()) {
      const std::lock_guard lock(mutex_);
      if (readers_ != 0) continue;
      mark(tables_);
      return;
    }
  }
  // A copy of the tables, whose objects live until let_go().
  Tables hold();
  void let_go();

  // A request, an event or a completion has got on.
  void note_progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  void note_empty_poll() { empty_polls_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t empty_polls() const { return empty_polls_.load(std::memory_order_relaxed); }

  // Around a fork(). In the child nobody reads.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool in_child) {
    assert_held(mutex_);
    if (in_child) readers_ = 0;
    mutex_.unlock();
  }

 private:
  static void wait_a_little();

  Mutex mutex_{LockRank::kHangNotes};
  Tables tables_;
  uint32_t readers_ = 0;
  std::atomic<uint64_t> progress_{0};
  std::atomic<uint64_t> empty_polls_{0};
};

}  // namespace dapple::soft::hang
