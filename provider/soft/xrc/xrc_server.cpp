// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_server.hpp"

#include <string.h>
#include <sys/prctl.h>

#include <bit>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"
#include "provider/soft/xrc/futex.hpp"
#include "provider/system/own_thread.hpp"

namespace dapple::soft {
namespace {

using roce::Fault;

// Between two looks whether the members with something here still live.
constexpr timespec kLook = {0, 250'000'000};

// False: no engine makes such a completion.
bool read_completion(const XrcNotice& notice, roce::Completion& completion) {
  if (notice.status > static_cast<uint32_t>(roce::CompletionStatus::kRnrRetryExceeded)) return false;
  const auto opcode = static_cast<roce::CompletionOpcode>(notice.opcode);
  if (opcode != roce::CompletionOpcode::kReceive && opcode != roce::CompletionOpcode::kReceiveWriteImmediate)
    return false;
  completion.status = static_cast<roce::CompletionStatus>(notice.status);
  completion.opcode = opcode;
  completion.flags = static_cast<uint8_t>(notice.flags & (roce::kWithImmediate | roce::kWithInvalidate));
  completion.solicited = notice.solicited != 0;
  completion.byte_count = notice.byte_count;
  completion.immediate_or_rkey = notice.immediate_or_rkey;
  completion.qpn = notice.qpn;
  completion.source_qpn = notice.source_qpn;
  return true;
}

}  // namespace

XrcServer::~XrcServer() {
  while (guests_ != nullptr) delete std::exchange(guests_, guests_->next);
  for (XrcChannel* channel : channels_) SharedXrcDomain::unmap(channel);
}

int XrcServer::start() {
  return start_own_thread(run, this);
}

void XrcServer::stop() {
  ends_.store(1, std::memory_order_release);
  shared_.wake_self();
  while (ended_.load(std::memory_order_acquire) == 0) futex_wait(ended_, 0, &kLook);
}

void* XrcServer::run(void* server) {
  prctl(PR_SET_NAME, "dapple-xrc");
  BiasedMutex::renounce_privileges();
  static_cast<XrcServer*>(server)->work();
  return nullptr;
}

void XrcServer::work() {
  const InsidePlugin inside;
  XrcRow& row = shared_.own_row();
  for (;;) {
    const uint32_t bell = row.doorbell.load(std::memory_order_acquire);
    // First, because a member may ask without pause.
    if (ends_.load(std::memory_order_acquire) != 0) break;
    uint64_t asked = row.asked.exchange(0, std::memory_order_acq_rel);
    if (asked == 0) {
      const bool watches = guests_ != nullptr || table_.has_foreign(domain_);
      futex_wait(row.doorbell, bell, watches ? &kLook : nullptr);
      if (watches) look_after_members();
      continue;
    }
    for (; asked != 0; asked &= asked - 1) serve(static_cast<uint32_t>(std::countr_zero(asked)));
  }
  // stop() may end this object at once. The wake then finds nobody.
  const std::atomic<uint32_t>& ended = ended_;
  ended_.store(1, std::memory_order_release);
  futex_wake(ended);
}

void XrcServer::serve(uint32_t member) {
  if (member == shared_.self()) return;
  shared_.send_waiting(member);
  if (channels_[member] == nullptr) channels_[member] = shared_.map_channel(member, shared_.self());
  XrcChannel* channel = channels_[member];
  if (channel == nullptr) return;
  // Read first: a notice behind a question shows the question, too.
  const uint32_t written = channel->written.load(std::memory_order_acquire);
  if (channel->state.load(std::memory_order_acquire) != XrcChannel::kAsked) {
    take_notices(*channel, member, written);
    return shared_.made_room(member, *channel);
  }
  const XrcQuestion question = channel->question;
  const uint32_t read = channel->read.load(std::memory_order_relaxed);
  const uint32_t all = channel->written.load(std::memory_order_acquire);
  take_notices(*channel, member, question.notices - read <= all - read ? question.notices : all);
  const XrcAnswer made = question.size > kXrcDataRoom ? XrcAnswer{.fault = static_cast<uint32_t>(Fault::kAccess)}
                                                      : answer(question, member, channel->data);
  // The queue pair may have ended while its question waited.
  take_notices(*channel, member, channel->written.load(std::memory_order_acquire));
  channel->answer = made;
  channel->state.store(XrcChannel::kAnswered, std::memory_order_release);
  futex_wake(channel->state);
  shared_.made_room(member, *channel);
}

void XrcServer::take_notices(XrcChannel& channel, uint32_t member, uint32_t end) {
  uint32_t read = channel.read.load(std::memory_order_relaxed);
  if (end - read > XrcChannel::kNotices) read = end;
  for (; read != end; ++read) {
    const XrcNotice notice = channel.notices[read % XrcChannel::kNotices];
    take(notice, member);
  }
  channel.read.store(read, std::memory_order_seq_cst);
}

void XrcServer::take(const XrcNotice& notice, uint32_t member) {
  switch (notice.kind) {
    case XrcNoticeKind::kComplete: {
      XrcGuest* found = find(member, notice.generation, notice.qpn);
      roce::Completion completion;
      if (found != nullptr && found->has_receive && read_completion(notice, completion)) complete(*found, completion);
      return;
    }
    case XrcNoticeKind::kLeave:
      for (XrcGuest** at = &guests_; *at != nullptr; at = &(*at)->next) {
        if ((*at)->member != member || (*at)->generation != notice.generation || (*at)->qpn != notice.qpn) continue;
        return remove(at);
      }
      return;
    case XrcNoticeKind::kQpEvent:
      return table_.raise_foreign(domain_, {member, notice.generation}, notice.qpn, notice.value);
    case XrcNoticeKind::kCloseQp:
      return table_.close_foreign(domain_, {member, notice.generation}, notice.qpn);
  }
}

XrcAnswer XrcServer::answer(const XrcQuestion& question, uint32_t member, std::byte* data) {
  XrcAnswer made;
  if (question.operation == XrcOperation::kOpenQp) {
    made.found = table_.open_foreign(domain_, {member, question.generation}, question.qpn, made.state);
    return made;
  }
  XrcGuest* once = is_once(question.operation) ? guest(question, member) : nullptr;
  if (once != nullptr && once->sequence == question.sequence) return once->answer;
  Fault fault = Fault::kNone;
  if (is_once(question.operation) && once == nullptr) {
    fault = Fault::kAccess;
  } else if (question.operation == XrcOperation::kTake) {
    answer_take(question, member, made);
  } else if (question.operation == XrcOperation::kScatter) {
    fault = scatter(question, member, data);
  } else {
    fault = access(question, data, made.original);
  }
  made.fault = static_cast<uint32_t>(fault);
  if (once != nullptr) {
    once->sequence = question.sequence;
    once->answer = made;
  }
  return made;
}

void XrcServer::answer_take(const XrcQuestion& question, uint32_t member, XrcAnswer& answer) {
  XrcGuest* taker = find(member, question.generation, question.qpn);
  assert(taker != nullptr);
  // Its queue pair was in RESET meanwhile, which drops the receive.
  taker->has_receive = false;
  bool noted = false;
  if (table_.take(domain_, question.srq, taker->receive, noted) == nullptr) return;
  taker->has_receive = true;
  taker->srq = question.srq;
  answer.found = kXrcFound;
  answer.count = taker->receive.segment_count;
  for (uint32_t i = 0; i < answer.count; ++i) answer.lengths[i] = taker->receive.segments[i].length;
  if (noted) table_.tell(domain_);
}

Fault XrcServer::scatter(const XrcQuestion& question, uint32_t member, const std::byte* data) {
  const XrcGuest* taker = find(member, question.generation, question.qpn);
  if (taker == nullptr || !taker->has_receive) return Fault::kAccess;
  const std::span<const roce::Segment> segments(taker->receive.segments, taker->receive.segment_count);
  const uint64_t room = roce::length_of(segments);
  if (question.address > room || question.size > room - question.address) return Fault::kAccess;
  return table_.with_memory_of(domain_, taker->srq, [&](roce::Memory& memory, uint32_t pd) {
    return memory.scatter({pd, question.qpn}, segments, question.address, data, question.size);
  });
}

Fault XrcServer::access(const XrcQuestion& question, std::byte* data, uint64_t& original) {
  return table_.with_memory_of(domain_, question.srq, [&](roce::Memory& memory, uint32_t pd) {
    const roce::Accessor who = {pd, question.qpn};
    switch (question.operation) {
      case XrcOperation::kCheckRemote:
        return memory.check_remote(who, {question.rkey, question.address, question.length}, question.access);
      case XrcOperation::kWrite:
        return memory.write(who, {question.rkey, question.address, question.size}, data);
      case XrcOperation::kRead:
        return memory.read(who, {question.rkey, question.address, question.size}, data);
      case XrcOperation::kCompareSwap:
        return memory.compare_swap(who, question.rkey, question.address, question.operands[0], question.operands[1],
                                   original);
      case XrcOperation::kFetchAdd:
        return memory.fetch_add(who, question.rkey, question.address, question.operands[0], original);
      case XrcOperation::kInvalidate:
        return memory.invalidate_remote(who, question.rkey);
      default:
        return Fault::kAccess;
    }
  });
}

void XrcServer::complete(XrcGuest& guest, const roce::Completion& completion) {
  roce::Completion whole = completion;
  whole.request_id = guest.receive.id;
  whole.mark = guest.receive.mark;
  guest.has_receive = false;
  if (table_.complete(domain_, guest.srq, whole)) table_.tell(domain_);
}

// --- Guests

XrcGuest* XrcServer::find(uint32_t member, uint32_t generation, uint32_t qpn) {
  XrcGuest* found = guests_;
  while (found != nullptr && (found->member != member || found->generation != generation || found->qpn != qpn))
    found = found->next;
  return found;
}

XrcGuest* XrcServer::guest(const XrcQuestion& question, uint32_t member) {
  XrcGuest* found = find(member, question.generation, question.qpn);
  if (found != nullptr) return found;
  if (guest_counts_[member] == kMaxXrcGuests) remove_earlier(member, question.generation);
  if (guest_counts_[member] == kMaxXrcGuests) return nullptr;
  found = new (std::nothrow) XrcGuest;
  if (found == nullptr) return nullptr;
  found->member = member;
  found->generation = question.generation;
  found->qpn = question.qpn;
  found->next = guests_;
  guests_ = found;
  guest_counts_[member]++;
  return found;
}

void XrcServer::remove(XrcGuest** at) {
  XrcGuest* gone = *at;
  *at = gone->next;
  assert(guest_counts_[gone->member] > 0);
  guest_counts_[gone->member]--;
  if (gone->has_receive) {
    roce::Completion flushed;
    flushed.status = roce::CompletionStatus::kFlushed;
    flushed.opcode = roce::CompletionOpcode::kReceive;
    flushed.qpn = gone->qpn;
    complete(*gone, flushed);
  }
  delete gone;
}

void XrcServer::remove_earlier(uint32_t member, uint32_t generation) {
  for (XrcGuest** at = &guests_; *at != nullptr;) {
    if ((*at)->member == member && (*at)->generation != generation) {
      remove(at);
    } else {
      at = &(*at)->next;
    }
  }
}

void XrcServer::look_after_members() {
  uint64_t alive = 0;
  for (uint32_t member = 0; member < kMaxXrcMembers; ++member) {
    if (member != shared_.self() && shared_.lives(member)) alive |= uint64_t{1} << member;
  }
  for (XrcGuest** at = &guests_; *at != nullptr;) {
    const bool is_left = (alive >> (*at)->member & 1) != 0 && (*at)->generation == shared_.generation_of((*at)->member);
    if (is_left) {
      at = &(*at)->next;
    } else {
      remove(at);
    }
  }
  table_.end_foreign(domain_, alive);
}

}  // namespace dapple::soft
