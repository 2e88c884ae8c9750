// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/shared_domain.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "provider/common/clock.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/xrc/futex.hpp"

namespace dapple::soft {
namespace {

// A process that has not answered for so long is stopped, or has no CPU: packets for it are lost.
constexpr uint64_t kPatienceMs = 1000;
// The same for a receive. The peer gets an RNR NAK then, before its own timer has spent all retries.
constexpr uint64_t kReceivePatienceMs = 20;
// Between two looks whether the process lives.
constexpr timespec kSlice = {0, 20'000'000};

struct flock byte_of(uint32_t member) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = member;
  lock.l_len = 1;
  return lock;
}

// An access to a page that the system has no memory for would end in SIGBUS.
void* map(int memory, int64_t place, size_t size) {
  // fallocate() is a place where a thread can be cancelled, and the caller has locks.
  const CancelGuard whole;
  while (fallocate(memory, FALLOC_FL_KEEP_SIZE, place, static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return nullptr;
  }
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, place);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace

uint32_t next_question() {
  static constinit std::atomic<uint32_t> last{0};
  uint32_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
  while (next == 0) next = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return next;
}

std::unique_ptr<SharedXrcDomain> SharedXrcDomain::join(int memory, uint32_t slot, uint32_t first_number,
                                                       Problem& problem) {
  void* board = map(memory, 0, kXrcBoardSize);
  std::unique_ptr<SharedXrcDomain> made;
  if (board != nullptr)
    made.reset(new (std::nothrow) SharedXrcDomain(memory, static_cast<XrcRow*>(board), first_number));
  if (made == nullptr) {
    if (board != nullptr) munmap(board, kXrcBoardSize);
    problem.set(ENOMEM, "no memory is left for the XRC domain that processes share");
    return nullptr;
  }
  if (!made->take_row(problem)) return nullptr;
  XrcRow& row = made->own_row();
  made->generation_ = row.generation.fetch_add(1) + 1;
  for (std::atomic<uint64_t>& word : row.numbers) word.store(0, std::memory_order_relaxed);
  row.first_number.store(first_number, std::memory_order_relaxed);
  row.slot.store(slot, std::memory_order_release);
  return made;
}

bool SharedXrcDomain::take_row(Problem& problem) {
  for (uint32_t member = 0; member < kMaxXrcMembers; ++member) {
    struct flock lock = byte_of(member);
    if (fcntl(memory_, F_SETLK, &lock) == 0) {
      self_ = member;
      return true;
    }
    if (errno != EAGAIN && errno != EACCES) {
      problem.set(errno, "the memory of the XRC domain cannot be locked: %s", strerror(errno));
      return false;
    }
  }
  problem.set(ENOSPC, "%u processes have the XRC domain open", kMaxXrcMembers);
  return false;
}

SharedXrcDomain::~SharedXrcDomain() {
  if (self_ != kNobody) {
    own_row().slot.store(0, std::memory_order_release);
    struct flock lock = byte_of(self_);
    lock.l_type = F_UNLCK;
    fcntl(memory_, F_SETLK, &lock);
  }
  for (XrcPeer& peer : peers_) unmap(peer.channel);
  munmap(rows_, kXrcBoardSize);
}

XrcChannel* SharedXrcDomain::map_channel(uint32_t from, uint32_t to) const {
  assert(from < kMaxXrcMembers && to < kMaxXrcMembers);
  const int64_t place = kXrcBoardSize + (int64_t{from} * kMaxXrcMembers + to) * kXrcChannelSize;
  return static_cast<XrcChannel*>(map(memory_, place, kXrcChannelSize));
}

void SharedXrcDomain::unmap(XrcChannel* channel) {
  if (channel != nullptr) munmap(channel, kXrcChannelSize);
}

// --- Numbers

void SharedXrcDomain::publish(uint32_t number) {
  const uint32_t at = number - first_number_;
  assert(at < kXrcNumbers);
  own_row().numbers[at / 64].fetch_or(uint64_t{1} << at % 64, std::memory_order_release);
}

void SharedXrcDomain::withdraw(uint32_t number) {
  const uint32_t at = number - first_number_;
  assert(at < kXrcNumbers);
  own_row().numbers[at / 64].fetch_and(~(uint64_t{1} << at % 64), std::memory_order_release);
}

uint32_t SharedXrcDomain::owner_of(uint32_t number) const {
  for (uint32_t member = 0; member < kMaxXrcMembers; ++member) {
    const XrcRow& row = rows_[member];
    if (member == self_ || row.slot.load(std::memory_order_acquire) == 0) continue;
    const uint32_t at = number - row.first_number.load(std::memory_order_relaxed);
    if (at < kXrcNumbers && (row.numbers[at / 64].load(std::memory_order_acquire) >> at % 64 & 1) != 0) return member;
  }
  return kNobody;
}

uint32_t SharedXrcDomain::owner_of_qp(uint32_t qpn) const {
  const uint32_t slot = slot_of(qpn);
  for (uint32_t member = 0; member < kMaxXrcMembers; ++member) {
    if (member != self_ && slot != 0 && rows_[member].slot.load(std::memory_order_acquire) == slot) return member;
  }
  return kNobody;
}

bool SharedXrcDomain::lives(uint32_t member) const {
  if (member >= kMaxXrcMembers || rows_[member].slot.load(std::memory_order_acquire) == 0) return false;
  struct flock lock = byte_of(member);
  return fcntl(memory_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// --- Questions and notices

// The notices that a process left at its end carry its generation, so the reader takes them for none of its successor's
// in the row.
XrcChannel* SharedXrcDomain::channel_to(XrcPeer& peer, uint32_t member) {
  assert_held(peer.mutex);
  if (peer.channel != nullptr) return peer.channel;
  XrcChannel* channel = map_channel(self_, member);
  if (channel == nullptr) return nullptr;
  channel->wants_room.store(0, std::memory_order_relaxed);
  peer.channel = channel;
  return channel;
}

void SharedXrcDomain::ring(uint32_t member) {
  XrcRow& row = rows_[member];
  row.asked.fetch_or(uint64_t{1} << self_, std::memory_order_acq_rel);
  row.doorbell.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(row.doorbell);
}

void SharedXrcDomain::wake_self() {
  own_row().doorbell.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(own_row().doorbell);
}

SharedXrcDomain::Asked SharedXrcDomain::await_answer(const XrcChannel& channel, uint32_t member,
                                                     uint64_t patience_ms) const {
  const uint64_t end = now_ms() + patience_ms;
  for (;;) {
    if (channel.state.load(std::memory_order_acquire) == XrcChannel::kAnswered) return Asked::kAnswered;
    futex_wait(channel.state, XrcChannel::kAsked, &kSlice);
    if (channel.state.load(std::memory_order_acquire) == XrcChannel::kAnswered) return Asked::kAnswered;
    if (!lives(member)) return Asked::kGone;
    if (now_ms() >= end) return Asked::kLater;
  }
}

SharedXrcDomain::Asked SharedXrcDomain::await_room(XrcPeer& peer, uint32_t member, XrcQuestion& question,
                                                   uint64_t patience_ms) {
  const uint64_t end = now_ms() + patience_ms;
  for (;;) {
    uint32_t read = 0;
    {
      const std::lock_guard lock(peer.mutex);
      read = peer.channel->read.load(std::memory_order_acquire);
      if (send_waiting(peer, member)) {
        question.notices = peer.channel->written.load(std::memory_order_relaxed);
        return Asked::kAnswered;
      }
    }
    if (!lives(member)) return Asked::kGone;
    if (now_ms() >= end) return Asked::kBusy;
    futex_wait(peer.channel->read, read, &kSlice);
  }
}

SharedXrcDomain::Asked SharedXrcDomain::ask(uint32_t member, XrcQuestion& question, const std::byte* data,
                                            XrcAnswer& answer, std::byte* result) {
  assert(member < kMaxXrcMembers && member != self_ && question.size <= kXrcDataRoom);
  XrcPeer& peer = peers_[member];
  const std::lock_guard asking(peer.asking);
  XrcChannel* channel = nullptr;
  {
    const std::lock_guard lock(peer.mutex);
    channel = channel_to(peer, member);
  }
  if (channel == nullptr) return Asked::kBusy;
  uint32_t state = channel->state.load(std::memory_order_acquire);
  if (state == XrcChannel::kAsked) {
    // An earlier question. The member has been too slow for it, so nobody waits for it now.
    if (!lives(member)) return Asked::kGone;
    ring(member);
    state = channel->state.load(std::memory_order_acquire);
    if (state == XrcChannel::kAsked) return Asked::kBusy;
  }
  const bool is_answered =
      state == XrcChannel::kAnswered && peer.qpn == question.qpn && peer.sequence == question.sequence;
  if (!is_answered) {
    const uint64_t patience = question.operation == XrcOperation::kTake ? kReceivePatienceMs : kPatienceMs;
    if (const Asked room = await_room(peer, member, question, patience); room != Asked::kAnswered) return room;
    question.generation = generation_;
    channel->question = question;
    if (data != nullptr) memcpy(channel->data, data, question.size);
    peer.qpn = question.qpn;
    peer.sequence = question.sequence;
    channel->state.store(XrcChannel::kAsked, std::memory_order_release);
    ring(member);
    if (const Asked asked = await_answer(*channel, member, patience); asked != Asked::kAnswered) return asked;
  }
  answer = channel->answer;
  if (result != nullptr) memcpy(result, channel->data, question.size);
  channel->state.store(XrcChannel::kIdle, std::memory_order_release);
  return Asked::kAnswered;
}

// --- Notices

uint32_t SharedXrcDomain::free_places(const XrcChannel& channel) {
  const uint32_t used = channel.written.load(std::memory_order_relaxed) - channel.read.load(std::memory_order_seq_cst);
  return XrcChannel::kNotices - std::min(used, XrcChannel::kNotices);
}

bool SharedXrcDomain::has_room(const XrcPeer& peer) {
  assert_held(peer.mutex);
  return free_places(*peer.channel) > peer.reserved;
}

void SharedXrcDomain::write(XrcChannel& channel, uint32_t member, XrcNotice notice) {
  notice.generation = generation_;
  const uint32_t written = channel.written.load(std::memory_order_relaxed);
  channel.notices[written % XrcChannel::kNotices] = notice;
  channel.written.store(written + 1, std::memory_order_release);
  ring(member);
}

// A notice that waits goes first.
bool SharedXrcDomain::reserve(uint32_t member) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  if (channel_to(peer, member) == nullptr || peer.reserved >= XrcChannel::kMaxReserved) return false;
  if (!send_waiting(peer, member) || !has_room(peer)) return false;
  peer.reserved++;
  return true;
}

void SharedXrcDomain::give_back(uint32_t member) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  assert(peer.reserved > 0);
  peer.reserved--;
}

void SharedXrcDomain::notify_reserved(uint32_t member, XrcNotice& notice) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  assert(peer.channel != nullptr && peer.reserved > 0);
  peer.reserved--;
  write(*peer.channel, member, notice);
}

bool SharedXrcDomain::keep_notice(uint32_t member) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  return channel_to(peer, member) != nullptr && peer.backlog.keep();
}

void SharedXrcDomain::drop_notice(uint32_t member) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  peer.backlog.give_back();
}

void SharedXrcDomain::tell(uint32_t member, const XrcNotice& notice) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  if (peer.backlog.is_empty() && has_room(peer)) {
    peer.backlog.give_back();
    return write(*peer.channel, member, notice);
  }
  peer.backlog.add(notice);
  send_waiting(peer, member);
}

void SharedXrcDomain::tell_event(uint32_t member, uint32_t qpn, uint32_t type) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  if (peer.backlog.is_empty() && has_room(peer))
    return write(*peer.channel, member, {.kind = XrcNoticeKind::kQpEvent, .qpn = qpn, .value = type});
  peer.backlog.add_event(qpn, type);
  send_waiting(peer, member);
}

void SharedXrcDomain::send_waiting(uint32_t member) {
  XrcPeer& peer = peers_[member];
  const std::lock_guard lock(peer.mutex);
  send_waiting(peer, member);
}

// True if no notice waits any more.
bool SharedXrcDomain::send_waiting(XrcPeer& peer, uint32_t member) {
  assert_held(peer.mutex);
  if (peer.backlog.is_empty()) return true;
  // A process that takes the row later knows nothing of this one.
  if (!lives(member)) peer.backlog.clear();
  while (!peer.backlog.is_empty()) {
    if (!has_room(peer)) {
      // The reader looks at this after it has taken notices: either it sees this, or the next line sees its room.
      peer.channel->wants_room.store(1, std::memory_order_seq_cst);
      if (!has_room(peer)) return false;
    }
    write(*peer.channel, member, peer.backlog.take());
  }
  return true;
}

void SharedXrcDomain::made_room(uint32_t member, XrcChannel& channel) {
  if (channel.wants_room.load(std::memory_order_seq_cst) == 0) return;
  channel.wants_room.store(0, std::memory_order_seq_cst);
  futex_wake(channel.read);
  ring(member);
}

}  // namespace dapple::soft
