// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The thread that answers the other processes of an XRC domain. It takes receives, copies bytes and completes for their
// queue pairs. It asks no other process, and takes no lock that a thread holds while it asks one: then processes that
// ask each other would wait in a circle. So it leaves the end of a queue pair to other threads.
#pragma once

#include <stdint.h>

#include <atomic>

#include "provider/soft/xrc/shared_domain.hpp"
#include "provider/soft/xrc/xrc_table.hpp"

namespace dapple::soft {

// A receiving queue pair of another process that takes receives here.
struct XrcGuest {
  uint32_t member = 0;
  uint32_t generation = 0;  // of its process
  uint32_t qpn = 0;
  bool has_receive = false;
  uint32_t srq = 0;  // that the receive is from
  roce::WholeReceiveRequest receive;
  uint32_t sequence = 0;  // of the last question that must not be executed twice
  XrcAnswer answer;       // to that one
  XrcGuest* next = nullptr;
};

// The thread's own, but for start() and stop().
class XrcServer {
 public:
  XrcServer(SharedXrcDomain& shared, XrcTable& table, XrcDomain& domain)
      : shared_(shared), table_(table), domain_(domain) {}
  ~XrcServer();
  XrcServer(const XrcServer&) = delete;
  XrcServer& operator=(const XrcServer&) = delete;

  // 0, or an errno.
  int start();
  // Returns when the thread does not use this object any more. Not if start() has failed.
  void stop();

 private:
  static void* run(void* server);
  void work();
  void serve(uint32_t member);
  // Up to the one with this number in the row of all.
  void take_notices(XrcChannel& channel, uint32_t member, uint32_t end);
  void take(const XrcNotice& notice, uint32_t member);
  XrcAnswer answer(const XrcQuestion& question, uint32_t member, std::byte* data);
  void answer_take(const XrcQuestion& question, uint32_t member, XrcAnswer& answer);
  roce::Fault scatter(const XrcQuestion& question, uint32_t member, const std::byte* data);
  // An access to memory by the queue pair's peer.
  roce::Fault access(const XrcQuestion& question, std::byte* data, uint64_t& original);
  void complete(XrcGuest& guest, const roce::Completion& completion);

  XrcGuest* find(uint32_t member, uint32_t generation, uint32_t qpn);
  // The same, and makes it. Null without memory, or if the member has kMaxXrcGuests.
  XrcGuest* guest(const XrcQuestion& question, uint32_t member);
  // The guest has ended. A receive that it has taken completes as flushed.
  void remove(XrcGuest** at);
  // The guests of the processes that had the row before.
  void remove_earlier(uint32_t member, uint32_t generation);
  // Forgets the processes that have ended.
  void look_after_members();

  SharedXrcDomain& shared_;
  XrcTable& table_;
  XrcDomain& domain_;
  XrcChannel* channels_[kMaxXrcMembers] = {};  // to this process
  XrcGuest* guests_ = nullptr;
  uint32_t guest_counts_[kMaxXrcMembers] = {};
  std::atomic<uint32_t> ends_{0};   // stop() wants the end
  std::atomic<uint32_t> ended_{0};  // a futex
};

}  // namespace dapple::soft
