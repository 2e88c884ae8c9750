// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's refusals, and the end of its service to a less limited dappled.
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "provider/dappled/limits.hpp"
#include "provider/dappled/server.hpp"
#include "provider/member/trust.hpp"

namespace dapple::dappled {
namespace {

constexpr int kSuccessorMilliseconds = 2000;
// Programs ask as soon as they have connected.
constexpr int kQuestionMilliseconds = 20;

constexpr uint16_t kYield = static_cast<uint16_t>(soft::MessageKind::kYield);

}  // namespace

soft::ErrorReply Server::refusal(const soft::Problem& problem) {
  soft::ErrorReply message;
  soft::Problem told = problem;
  if (is_shortage(problem.error)) {
    describe_shortage(problem.error, starter_, told);
    message.limits = soft::hard_limits();
  }
  message.header.error = static_cast<uint32_t>(told.error);
  static_assert(sizeof message.line >= sizeof told.line);
  memcpy(message.line, told.line, sizeof told.line);
  return message;
}

void Server::refuse(Connection& connection, const soft::Problem& problem) {
  refused_requests_++;
  soft::ErrorReply message = refusal(problem);
  reply(connection, message);
}

void Server::refuse_connection(const soft::OwnedFd& socket, const soft::Problem& problem) {
  refused_connections_++;
  soft::ErrorReply message = refusal(problem);
  const uint16_t kind = static_cast<uint16_t>(soft::MessageKind::kConnection) | soft::kReplyBit;
  soft::send_message(socket.get(), soft::seal(message, kind), {}, MSG_DONTWAIT);
}

// No descriptor was left for those that came with the message.
void Server::refuse_unreceived(Connection& connection, std::span<const std::byte> message) {
  soft::MessageHeader header;
  memcpy(&header, message.data(), sizeof header);
  if (header.magic != soft::kMagic || !connection.trusted) return drop_malformed(connection);
  connection.question = static_cast<soft::MessageKind>(header.kind);
  soft::Problem problem;
  problem.set(EMFILE, "dappled has no file descriptor left");
  refuse(connection, problem);
}

void Server::answer_yield(Connection& connection, const soft::YieldRequest& request, soft::Descriptors&) {
  if (!request.limits.allow_more_than(soft::hard_limits())) {
    soft::Problem problem;
    problem.set(EPERM, "the running dappled has no lower limits");
    return refuse(connection, problem);
  }
  yield_to(connection.socket);
}

void Server::yield_to(const soft::OwnedFd& successor) {
  listener_.reset();
  yielded_ = true;
  soft::HeaderOnly message;
  soft::send_message(successor.get(), soft::seal(message, kYield | soft::kReplyBit), {}, MSG_DONTWAIT);
  // Members look for another dappled as soon as this one ends, and one of them could take the name.
  pollfd gone = {successor.get(), POLLIN, 0};
  poll(&gone, 1, kSuccessorMilliseconds);
}

bool Server::yields_at_once(const soft::OwnedFd& socket) {
  pollfd question = {socket.get(), POLLIN, 0};
  if (!soft::trusted_uid(peer_of(socket).uid) || poll(&question, 1, kQuestionMilliseconds) <= 0) return false;
  std::byte room[sizeof(soft::YieldRequest)];
  const ssize_t size = soft::receive_message(socket.get(), room);
  soft::YieldRequest request;
  if (size <= 0 || !soft::well_formed(std::span(room).first(static_cast<size_t>(size)), kYield, request)) return false;
  if (!request.limits.allow_more_than(soft::hard_limits())) return false;
  yield_to(socket);
  return true;
}

}  // namespace dapple::dappled
