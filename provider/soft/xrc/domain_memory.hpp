// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory that the processes of an XRC domain share: a board with a row for each process (member), and a channel
// from each member to each other one. By a channel a member asks one question at a time, and leaves notices that need
// no answer. Notices that find no place wait in the member's own memory (XrcBacklog).
//
// A member locks the byte with its number in the memory's file. The kernel ends this lock with the process, so members
// see who lives. All members are processes of one user. Even so, a member uses no number from this memory before it has
// copied and checked it.
#pragma once

#include <stdint.h>

#include <atomic>
#include <cstddef>

#include "provider/protocol/xrc_messages.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft {

inline constexpr uint32_t kXrcNumbers = 1 << 16;  // shared receive queues of a process
inline constexpr uint32_t kMaxXrcGuests = 4096;   // queue pairs of a process that take receives of another one
inline constexpr uint32_t kXrcDataRoom = 4096;    // the longest payload of a packet

struct XrcRow {
  std::atomic<uint32_t> generation;    // counts the processes that had the row
  std::atomic<uint32_t> slot;          // the process' slot; 0: it has not joined yet
  std::atomic<uint32_t> first_number;  // of its shared receive queues
  std::atomic<uint32_t> doorbell;      // a futex: changes with each bit of `asked`
  std::atomic<uint64_t> asked;         // a bit for each member that has put something into its channel to this one
  std::atomic<uint64_t> numbers[kXrcNumbers / 64];  // a bit for each number that a shared receive queue has
};
static_assert(kMaxXrcMembers <= 64 && sizeof(XrcRow) * kMaxXrcMembers <= kXrcBoardSize);

enum class XrcOperation : uint32_t {
  kTake = 1,     // a receive of the queue; the answer has the lengths of its segments
  kScatter,      // `size` bytes to the place `address` in the receive that was taken
  kCheckRemote,  // as the functions of roce::Memory
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kInvalidate,
  kOpenQp,  // one handle more of the queue pair `qpn`
};

// Must not be executed twice.
constexpr bool is_once(XrcOperation operation) {
  return operation == XrcOperation::kTake || operation == XrcOperation::kCompareSwap ||
         operation == XrcOperation::kFetchAdd || operation == XrcOperation::kInvalidate;
}

struct XrcQuestion {
  XrcOperation operation = XrcOperation::kTake;
  // Of the queue pair's questions. The same question, asked again, has the same number, and is not executed again.
  uint32_t sequence = 0;
  uint32_t generation = 0;  // of the asking member's row
  uint32_t notices = 0;     // XrcChannel::written when it was asked: those before come first
  uint32_t qpn = 0;
  uint32_t srq = 0;
  uint32_t rkey = 0;
  uint32_t access = 0;
  uint32_t size = 0;  // of the bytes in XrcChannel::data, which come with the question or with the answer
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t operands[2] = {};
};

enum XrcFound : uint32_t { kXrcMissing, kXrcFound, kXrcNoRoom };

struct XrcAnswer {
  uint32_t fault = 0;  // roce::Fault
  uint32_t count = 0;  // kTake: the receive's segments
  uint32_t found = 0;  // kTake: there is a receive; kOpenQp: there is such a queue pair (XrcFound)
  uint32_t state = 0;  // kOpenQp: ibv_qp_state
  uint64_t original = 0;
  uint32_t lengths[roce::kMaxSegments] = {};
};

enum class XrcNoticeKind : uint32_t {
  kComplete = 1,  // the receive that was taken for the queue pair
  kLeave,         // the queue pair has ended
  kQpEvent,       // `value` is an ibv_event_type, for handles of the queue pair in the other process
  kCloseQp,       // one handle less of the queue pair `qpn`
};

struct XrcNotice {
  XrcNoticeKind kind = XrcNoticeKind::kComplete;
  uint32_t generation = 0;
  uint32_t qpn = 0;
  uint32_t value = 0;
  uint32_t status = 0;  // roce::CompletionStatus
  uint32_t opcode = 0;  // roce::CompletionOpcode
  uint32_t flags = 0;
  uint32_t solicited = 0;
  uint32_t byte_count = 0;
  uint32_t immediate_or_rkey = 0;
  uint32_t source_qpn = 0;
  uint32_t reserved = 0;
};

struct XrcChannel {
  enum State : uint32_t { kIdle, kAsked, kAnswered };
  static constexpr uint32_t kNotices = 1024;
  // Places that are kept for notices of taken receives. The others are for those that wait for a place.
  static constexpr uint32_t kMaxReserved = kNotices - 64;

  std::atomic<uint32_t> state;  // a futex
  std::atomic<uint32_t> written;
  std::atomic<uint32_t> read;  // a futex, if `wants_room` was set
  std::atomic<uint32_t>
      wants_room;  // the writer found the ring full: the reader clears this and rings the writer's bell
  XrcQuestion question;
  XrcAnswer answer;
  XrcNotice notices[kNotices];
  std::byte data[kXrcDataRoom];
};
static_assert(sizeof(XrcChannel) <= kXrcChannelSize);

}  // namespace dapple::soft
