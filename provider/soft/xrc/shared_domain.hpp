// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This process as a member of an XRC domain that processes share: its row, and its channels to the others. The other
// end of a channel is the other process' XrcServer.
#pragma once

#include <stdint.h>

#include <atomic>
#include <memory>

#include "provider/common/mutex.hpp"
#include "provider/soft/xrc/domain_memory.hpp"
#include "provider/soft/xrc/xrc_backlog.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// A number for XrcQuestion::sequence, never 0.
uint32_t next_question();

// Another process of the domain.
struct XrcPeer {
  // Of the thread that asks, until it has the answer. A server never takes it: servers that waited for each other's
  // askers would wait in a circle.
  Mutex asking{LockRank::kXrcAsking};
  uint32_t qpn = 0;  // of the question in the channel
  uint32_t sequence = 0;

  Mutex mutex{LockRank::kXrcPeer};  // nobody waits while holding it
  // Guarded by this mutex.
  XrcChannel* channel = nullptr;  // from here to there; does not change once it is set
  uint32_t reserved = 0;          // notices that have a place for certain
  XrcBacklog backlog;
};

// Internally locked. Questions block until they are answered, and for a second at most. Nothing else blocks.
class SharedXrcDomain {
 public:
  static constexpr uint32_t kNobody = kMaxXrcMembers;
  // The last two are XrcTable's.
  enum class Asked : uint8_t { kAnswered, kLater, kBusy, kGone, kNoMemory, kNoRoom };

  // Takes a row. `memory` stays the caller's, who closes it after the end of this object. `slot`: this process' one.
  // `first_number`: of its shared receive queues. Null on failure, and `problem` has the reason.
  static std::unique_ptr<SharedXrcDomain> join(int memory, uint32_t slot, uint32_t first_number, Problem& problem);
  ~SharedXrcDomain();
  SharedXrcDomain(const SharedXrcDomain&) = delete;
  SharedXrcDomain& operator=(const SharedXrcDomain&) = delete;

  uint32_t self() const { return self_; }
  uint32_t generation() const { return generation_; }
  XrcRow& own_row() { return rows_[self_]; }
  uint32_t generation_of(uint32_t member) const { return rows_[member].generation.load(std::memory_order_acquire); }
  // The channel between two members; null without memory. Its end as this object.
  XrcChannel* map_channel(uint32_t from, uint32_t to) const;
  static void unmap(XrcChannel* channel);

  // Shows a number to the other members, or hides it.
  void publish(uint32_t number);
  void withdraw(uint32_t number);
  // The other member with a shared receive queue of this number, or with this queue pair; kNobody if there is none.
  uint32_t owner_of(uint32_t number) const;
  uint32_t owner_of_qp(uint32_t qpn) const;
  // Asks the kernel.
  bool lives(uint32_t member) const;

  // Asks a member. With kAnswered the question has been executed once, also if it was asked before. kLater: the member
  // does not answer now, and may execute the question later; ask the same again. kBusy: the same, but an earlier
  // question or notice waits, so this one has not been asked, or not again. `data`: question.size bytes that go with
  // the question, or null. `result`: room for as many bytes of the answer, or null.
  Asked ask(uint32_t member, XrcQuestion& question, const std::byte* data, XrcAnswer& answer, std::byte* result);
  // Keeps a place for one notice. False if there is none.
  bool reserve(uint32_t member);
  void give_back(uint32_t member);
  // Uses a reserved place.
  void notify_reserved(uint32_t member, XrcNotice& notice);
  // Notices without a reserved place. keep_notice() before what makes the notice necessary: afterwards the member gets
  // it in any case, as long as it lives. False without memory. tell() uses it; drop_notice() gives it back.
  // tell_event() does neither: a queue pair with handles in the other process keeps one notice for all its events.
  bool keep_notice(uint32_t member);
  void drop_notice(uint32_t member);
  void tell(uint32_t member, const XrcNotice& notice);
  void tell_event(uint32_t member, uint32_t qpn, uint32_t type);
  // There may be room for the notices that wait.
  void send_waiting(uint32_t member);
  // For the reader of the channel from this member: it has taken notices.
  void made_room(uint32_t member, XrcChannel& channel);
  // Rings this process' own bell.
  void wake_self();

 private:
  SharedXrcDomain(int memory, XrcRow* rows, uint32_t first_number)
      : memory_(memory), rows_(rows), first_number_(first_number) {}
  bool take_row(Problem& problem);
  XrcChannel* channel_to(XrcPeer& peer, uint32_t member);
  void ring(uint32_t member);
  Asked await_answer(const XrcChannel& channel, uint32_t member, uint64_t patience_ms) const;
  // Until no notice waits that the question must follow.
  Asked await_room(XrcPeer& peer, uint32_t member, XrcQuestion& question, uint64_t patience_ms);
  bool send_waiting(XrcPeer& peer, uint32_t member);
  static bool has_room(const XrcPeer& peer);
  void write(XrcChannel& channel, uint32_t member, XrcNotice notice);
  static uint32_t free_places(const XrcChannel& channel);

  const int memory_;
  XrcRow* const rows_;
  const uint32_t first_number_;
  uint32_t self_ = kNobody;
  uint32_t generation_ = 0;
  XrcPeer peers_[kMaxXrcMembers];
};

}  // namespace dapple::soft
