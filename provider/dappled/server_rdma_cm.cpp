// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's part of rdma_cm: messages in, and the time and the wire for it.
#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

#include <algorithm>

#include "provider/dappled/limits.hpp"
#include "provider/dappled/server.hpp"

namespace dapple::dappled {
namespace {

constexpr Milliseconds kRetryPort = 100;

}  // namespace

rdma_cm::ChannelServer::Program Server::cm_program(const Connection& connection) const {
  return {.process = static_cast<uint32_t>(connection.process),
          .gid_order = connection.gid_order,
          .rails = views_.rails(connection.view)};
}

void Server::answer_cm_open(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors) {
  soft::Problem problem;
  // A busy port is no reason to refuse: members of the last dappled pass it on, or it becomes free.
  if (slots_.take_port(problem) == Slots::Grant::kRefused) return refuse(connection, problem);
  problem.clear();
  if (!descriptors.fds[0]) {
    problem.set(EINVAL, "the question lacks the channel's descriptor");
    return refuse(connection, problem);
  }
  give_wire(problem);
  if (is_file_shortage(problem.error)) return refuse(connection, problem);
  soft::CmOpenReply message;
  int journal = -1;
  if (const int error = cm_.open(std::move(descriptors.fds[0]), cm_program(connection), message.channel, journal);
      error != 0) {
    problem.set(error, "dappled cannot open rdma_cm: %s", strerror(error));
    return refuse(connection, problem);
  }
  give_wire(problem);
  reply(connection, message, {&journal, 1});
}

void Server::answer_cm_restore(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors) {
  refresh_devices();
  soft::CmRestoreReply message;
  const int error =
      cm_.restore(std::move(descriptors.fds[0]), std::move(descriptors.fds[1]), cm_program(connection), message);
  soft::Problem problem;
  if (error != 0) {
    problem.set(error, "dappled cannot take over a channel of rdma_cm: %s", strerror(error));
    return refuse(connection, problem);
  }
  give_wire(problem);
  reply(connection, message);
}

void Server::answer_cm_command(Connection& connection, const soft::CmCommandRequest& request, soft::Descriptors&) {
  // These two commands need the present devices. For other commands, changes can wait until the watch wakes the loop.
  rdma_ucm_cmd_hdr header = {};
  if (request.length >= sizeof header) memcpy(&header, request.command, sizeof header);
  if (header.cmd == RDMA_USER_CM_CMD_BIND_IP || header.cmd == RDMA_USER_CM_CMD_RESOLVE_IP) refresh_devices();
  soft::CmCommandReply message;
  const char* const reason = cm_.command(request, message);
  // A command that removes no event leaves a held channel held: it may come from another thread of the program.
  if (message.removed != 0 || message.removed_events != 0) {
    const soft::CmChannelName& held = header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID ? request.source : request.channel;
    if (connection.held.key != held.key || connection.held.number != held.number) resume(connection);
    connection.held = held;
  }
  if (message.header.error == 0 || reason[0] == '\0') return reply(connection, message);
  soft::ErrorReply refused;
  refused.header.error = message.header.error;
  snprintf(refused.line, sizeof refused.line, "%s", reason);
  reply(connection, refused);
}

void Server::resume(Connection& connection) {
  if (connection.held.key != 0) cm_.resume(connection.held);
  connection.held = {};
}

void Server::answer_cm_resume(Connection& connection, const soft::CmResumeRequest&, soft::Descriptors&) {
  resume(connection);
  soft::HeaderOnly message;
  reply(connection, message);
}

void Server::answer_capture(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors) {
  if (const int error = cm_.captures().add(number_of(connection), std::move(descriptors.fds[0])); error != 0) {
    soft::Problem problem;
    problem.set(error, "dappled cannot write packets to this file: %s", strerror(error));
    return refuse(connection, problem);
  }
  soft::HeaderOnly message;
  reply(connection, message);
}

// QP 1 answers as long as a program has the port. It also answers requests for services that do not exist here.
void Server::give_wire(soft::Problem& problem) {
  if (cm_.has_wire() || (cm_.channels() == 0 && !slots_.group().exists())) return;
  // A look at the port's owner takes some time, and each pass of the loop comes here.
  if (!slots_.group().exists() && now() >= next_port_look_) {
    slots_.take_port(problem);
    next_port_look_ = now() + kRetryPort;
  }
  if (slots_.group().exists()) cm_.use(slots_.group(), &slots_.counters().at(0)->counters, problem);
}

int Server::wait_for_cm(int milliseconds) const {
  Milliseconds most = INT32_MAX;
  if (cm_.channels() > 0 && !cm_.has_wire()) most = kRetryPort;
  if (const roce::Time deadline = cm_.deadline(); deadline != roce::kNever) {
    if (deadline <= cm_.time()) return 0;
    // Rounded up, because the loop would otherwise turn without work.
    const auto time = static_cast<Milliseconds>(cm_.time() / 1'000'000);
    most = std::min(most, std::max<Milliseconds>(static_cast<Milliseconds>(deadline / 1'000'000) + 1 - time, 0));
  }
  if (most == INT32_MAX) return milliseconds;
  return milliseconds < 0 ? static_cast<int>(most) : std::min(milliseconds, static_cast<int>(most));
}

}  // namespace dapple::dappled
