// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The connection to dappled, which may be opened again after its end. DaemonLink decides when, and holds its lock
// during each call. Any thread may call fd() and the functions for changes without the lock.
#pragma once

#include <errno.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/protocol/cm_messages.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// Before another try, when dappled has too many connections or memory lacks.
inline constexpr timespec kBusyPause = {0, 20'000'000};

// The sender of a message lacks memory, or has too many descriptors in queues. This may end in a moment.
inline bool lacks_memory(int error) {
  return error == ETOOMANYREFS || error == ENOMEM || error == ENOBUFS;
}

// A message struct that takes the answer to a question.
struct ReplyRoom {
  template <class Reply>
  ReplyRoom(Reply& reply)  // NOLINT(google-explicit-constructor): a question is given the struct itself
      : message(&reply), header(&reply.header), take([](std::span<const std::byte> bytes, uint16_t kind, void* room) {
          return well_formed(bytes, kind, *static_cast<Reply*>(room));
        }) {
    static_assert(sizeof(Reply) <= kMaxMessageSize);
  }

  void* message;
  const MessageHeader* header;  // of this message
  // Copies the bytes into `message`, and tells whether they are such a message.
  bool (*take)(std::span<const std::byte> bytes, uint16_t kind, void* message);
};

class DaemonConnection {
 public:
  enum class Answer { kGood, kRefused, kGone };

  // False on failure; `nobody`: no dappled runs, or another user's has just ended.
  bool open(Problem& problem, bool& nobody);
  void close();
  // In a child of fork(): the parent's connection must not end.
  void leave_to_parent();
  explicit operator bool() const { return static_cast<bool>(socket_); }

  // One question. `request` comes from seal(); `descriptors` is null if none come. Blocks at most for some seconds.
  // Unless the answer is kGood, `problem` has the reason, and the connection may have ended.
  Answer exchange(MessageKind kind, std::span<const std::byte> request, std::span<const int> sent,
                  const ReplyRoom& reply, Descriptors* descriptors, Problem& problem);
  Answer last_answer() const { return answer_; }
  // By the last answer, dappled lacks descriptors or memory, and would yield to one that this program starts.
  bool would_yield() const { return would_yield_; }

  // Reads dappled's reports without waiting, and closes the connection if dappled has ended it.
  void read_reports();
  // Tells whether dappled was found to be silent after `since` (now_ns()), and sets `problem` then.
  bool is_silent_since(uint64_t since, Problem& problem) const;

  // -1 if there is no connection.
  int fd() const { return fd_.load(std::memory_order_relaxed); }
  bool changed() const { return changed_.load(std::memory_order_relaxed); }
  void note_change() { changed_.store(true); }
  bool take_changed() { return changed_.exchange(false); }

 private:
  Answer exchange_once(MessageKind kind, std::span<const std::byte> request, std::span<const int> sent,
                       const ReplyRoom& reply, Descriptors* descriptors, Problem& problem);
  Answer not_sent(int error, Problem& problem);
  Answer give_up(Answer otherwise, Problem& problem);
  Answer not_answered(int error, Problem& problem);
  Answer judge(std::span<const std::byte> bytes, MessageKind kind, const ReplyRoom& reply, Problem& problem);
  void note_silence(Problem& problem);
  void note_refusal(const ErrorReply& reply, Problem& problem);
  bool was_refused(Problem& problem);
  // Tells whether dappled has reported a change, and notes it.
  bool is_change(std::span<const std::byte> room, ssize_t size);

  std::atomic<bool> changed_{false};
  std::atomic<int> fd_{-1};  // the number of socket_
  OwnedFd socket_;
  Answer answer_ = Answer::kGood;  // the last one, or that the connection was opened
  bool would_yield_ = false;
  uint64_t silence_ = 0;  // when dappled was last found to be silent; 0: never
};

}  // namespace dapple::soft
