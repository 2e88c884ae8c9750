// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/daemon_connection.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include <cassert>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/member/daemon_start.hpp"
#include "provider/member/idle_daemon.hpp"
#include "provider/member/name_holder.hpp"
#include "provider/member/open_questions.hpp"
#include "provider/member/trust.hpp"
#include "provider/system/process_state.hpp"

namespace dapple::soft {
namespace {

constexpr timeval kAnswerTime = {10, 0};
// A dappled that has no CPU, or that the kernel or a disk keeps waiting, gets the time so many times again.
constexpr int kMoreWaits = 5;

constexpr uint16_t kRefusedConnection = static_cast<uint16_t>(MessageKind::kConnection) | kReplyBit;

void silent_holder(Problem& problem) {
  char subject[120];
  name_holder(find_name_holder(kDaemonName, SOCK_SEQPACKET), subject, sizeof subject);
  problem.set(ETIMEDOUT, "%s has the name of dappled and does not answer; end it, or run in another network namespace",
              subject);
}

bool holder_is_kept_waiting() {
  return is_kept_waiting(find_name_holder(kDaemonName, SOCK_SEQPACKET).process);
}

// The answer of a refused connection. Too many connections may be fewer after a pause. A lack of descriptors lasts.
DaemonConnection::Answer after_refusal(const Problem& problem) {
  if (problem.error != EBUSY) return DaemonConnection::Answer::kRefused;
  nanosleep(&kBusyPause, nullptr);
  return DaemonConnection::Answer::kGone;
}

}  // namespace

bool DaemonConnection::open(Problem& problem, bool& nobody) {
  nobody = false;
  OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) {
    problem.set(errno, "cannot make a socket to reach dappled: %s%s", strerror(errno), descriptor_remedy(errno));
    return false;
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerTime, sizeof kAnswerTime);
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
  sockaddr_un address;
  const socklen_t size = abstract_address(kDaemonName, address);
  int result;
  int more_waits = kMoreWaits;
  do {
    result = connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  } while (result != 0 && (errno == EINTR || (errno == EAGAIN && more_waits-- > 0 && holder_is_kept_waiting())));
  if (result != 0) {
    nobody = errno == ECONNREFUSED;
    problem.set(errno, nobody ? "dappled does not run" : "dappled cannot be reached: %s", strerror(errno));
    if (problem.error == EAGAIN) note_silence(problem);
    return false;
  }
  // Any process may take an abstract name.
  ucred who = {};
  socklen_t who_size = sizeof who;
  getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &who_size);
  if (!trusted_uid(who.uid)) {
    nobody = idle_daemon_ends(socket.get());
    char process[32] = "";
    if (who.pid != 0) snprintf(process, sizeof process, " (process %d)", who.pid);
    problem.set(EACCES,
                "dappled of user %u%s serves this network namespace; wait until that user's programs have ended, run "
                "as that user, in another network namespace, or set DAPPLE_TRUST_UID for both",
                who.uid, process);
    return false;
  }
  socket_ = std::move(socket);
  socket_.hide();
  fd_.store(socket_.get(), std::memory_order_relaxed);
  answer_ = Answer::kGood;
  would_yield_ = false;
  // The last dappled may have died before it could report a change.
  note_change();
  return true;
}

void DaemonConnection::close() {
  fd_.store(-1, std::memory_order_relaxed);
  // Wakes a thread that polls the descriptor.
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
}

void DaemonConnection::leave_to_parent() {
  fd_.store(-1, std::memory_order_relaxed);
  socket_.reset();
}

void DaemonConnection::note_silence(Problem& problem) {
  silence_ = now_ns();
  silent_holder(problem);
}

bool DaemonConnection::is_silent_since(uint64_t since, Problem& problem) const {
  if (silence_ <= since) return false;
  silent_holder(problem);
  return true;
}

void DaemonConnection::note_refusal(const ErrorReply& reply, Problem& problem) {
  problem.set(static_cast<int>(reply.header.error), "%.*s", static_cast<int>(sizeof reply.line - 1), reply.line);
  would_yield_ = reply.limits.open_files != 0 && hard_limits().allow_more_than(reply.limits);
}

// dappled refuses a new connection, and closes it, before it has read anything. Its report is still in the queue.
bool DaemonConnection::was_refused(Problem& problem) {
  std::byte room[sizeof(ErrorReply)];
  Descriptors none;
  ErrorReply refused;
  for (int i = 0; i < 2; i++) {  // the first call reports the end of the connection
    const ssize_t size = receive_message(socket_.get(), room, none, MSG_DONTWAIT);
    if (size <= 0 || !well_formed(std::span(room).first(static_cast<size_t>(size)), kRefusedConnection, refused))
      continue;
    note_refusal(refused, problem);
    return true;
  }
  return false;
}

DaemonConnection::Answer DaemonConnection::exchange(MessageKind kind, std::span<const std::byte> request,
                                                    std::span<const int> sent, const ReplyRoom& reply,
                                                    Descriptors* descriptors, Problem& problem) {
  const OpenQuestion waits;
  answer_ = exchange_once(kind, request, sent, reply, descriptors, problem);
  return answer_;
}

DaemonConnection::Answer DaemonConnection::exchange_once(MessageKind kind, std::span<const std::byte> request,
                                                         std::span<const int> sent, const ReplyRoom& reply,
                                                         Descriptors* descriptors, Problem& problem) {
  static_assert(sizeof(ErrorReply) <= kMaxMessageSize);
  assert(socket_);
  would_yield_ = false;
  if (const int error = send_message(socket_.get(), request, sent); error != 0) return not_sent(error, problem);
  alignas(8) std::byte room[kMaxMessageSize];
  ssize_t size;
  int more_waits = kMoreWaits;
  do {
    size = descriptors == nullptr ? receive_message(socket_.get(), room)
                                  : receive_message(socket_.get(), room, *descriptors);
  } while (is_change(room, size) || (size == -EAGAIN && more_waits-- > 0 && holder_is_kept_waiting()));
  if (size <= 0) return not_answered(size == 0 ? EPIPE : static_cast<int>(-size), problem);
  return judge(std::span(room).first(static_cast<size_t>(size)), kind, reply, problem);
}

DaemonConnection::Answer DaemonConnection::not_sent(int error, Problem& problem) {
  // EAGAIN: dappled's queue is full, because it does not read any more. A lack of descriptors or memory is our own.
  problem.set(error, "dappled cannot be asked: %s%s", strerror(error), descriptor_remedy(error));
  if (error == EAGAIN) note_silence(problem);
  if (lacks_memory(error)) return Answer::kRefused;
  return give_up(error == EAGAIN ? Answer::kRefused : Answer::kGone, problem);
}

DaemonConnection::Answer DaemonConnection::not_answered(int error, Problem& problem) {
  problem.set(error,
              error == EMFILE ? "No file descriptor is left for descriptors from dappled; raise ulimit -n"
                              : "dappled does not answer: %s",
              strerror(error));
  if (error == EAGAIN) note_silence(problem);
  return give_up(error == EAGAIN || error == EMFILE ? Answer::kRefused : Answer::kGone, problem);
}

// An answer that comes later would be taken for the next question's. `otherwise`: unless dappled has refused the
// connection.
DaemonConnection::Answer DaemonConnection::give_up(Answer otherwise, Problem& problem) {
  const bool refused = was_refused(problem);
  close();
  return refused ? after_refusal(problem) : otherwise;
}

DaemonConnection::Answer DaemonConnection::judge(std::span<const std::byte> bytes, MessageKind kind,
                                                 const ReplyRoom& reply, Problem& problem) {
  const uint16_t number = static_cast<uint16_t>(kind) | kReplyBit;
  ErrorReply refused;
  if (well_formed(bytes, kRefusedConnection, refused)) {
    note_refusal(refused, problem);
    close();
    return after_refusal(problem);
  }
  if (well_formed(bytes, number, refused) && refused.header.error != 0) {
    note_refusal(refused, problem);
    return Answer::kRefused;
  }
  if (reply.take(bytes, number, reply.message)) {
    if (reply.header->error == 0) return Answer::kGood;
    problem.error = static_cast<int>(reply.header->error);
    return Answer::kRefused;
  }
  problem.set(EPROTO, "dappled has another release; end the programs that use dappled and start again");
  close();
  return Answer::kRefused;
}

bool DaemonConnection::is_change(std::span<const std::byte> room, ssize_t size) {
  HeaderOnly message;
  const uint16_t kind = static_cast<uint16_t>(MessageKind::kChanged);
  if (size <= 0 || !well_formed(room.first(static_cast<size_t>(size)), kind, message)) return false;
  note_change();
  return true;
}

void DaemonConnection::read_reports() {
  if (!socket_) return;
  std::byte room[sizeof(HeaderOnly)];
  Descriptors none;
  ssize_t size;
  do {
    size = receive_message(socket_.get(), room, none, MSG_DONTWAIT);
  } while (is_change(room, size));
  // Nothing else comes unasked, so there is either nothing or the end.
  if (size != -EAGAIN) close();
}

}  // namespace dapple::soft
