// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The one background thread of the library: connection events of all IAs, asynchronous device events, and time-outs of
// connections. It runs while an IA is open.
#pragma once

#include "ibverbs-glue/verbs.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/unique_fd.hpp"

namespace dapple::dat {

class Ep;

class ConnectionManager {
 public:
  static ConnectionManager& instance();

  // All of these but notify() are called with the control mutex held.

  // Starts the thread for the first IA.
  Result<> acquire();
  // Ends it after the last one. The second form drops the mutex to join, and leaves it dropped.
  void release();
  void release(std::unique_lock<std::mutex>& control);

  rdma_event_channel* channel() const { return channel_.get(); }
  // Listens for the asynchronous events of a device; several IAs may share one context.
  Result<> watch(ibv_context* context);
  void unwatch(ibv_context* context);

  // Calls ep.on_deadline() at that time of the monotonic clock; kNever forgets it. One deadline per EP.
  void set_deadline(Ep& ep, int64_t& current_ns, int64_t deadline_ns);

  // From the data path, any thread, no lock needed: ep.on_attention() runs soon on the manager's thread.
  void notify(Ep& ep);
  // The EP is going away.
  void forget(Ep& ep);

 private:
  ConnectionManager() = default;
  void start();
  void run();
  void serve_connection_events();
  void serve_device_events();
  void serve_device_event(ibv_context* context, ibv_async_event& event);
  void serve_attention();
  void serve_deadlines();
  void wake();

  uint32_t users_ = 0;
  bool stop_ = false;
  pid_t pid_ = 0;
  verbs::EventChannel channel_;
  UniqueFd wake_fd_;
  std::thread thread_;
  std::map<ibv_context*, uint32_t> watched_;
  std::set<std::pair<int64_t, Ep*>> deadlines_;

  std::mutex attention_mutex_;  // a leaf: taken from the data path
  std::vector<Ep*> attention_;
};

}  // namespace dapple::dat
