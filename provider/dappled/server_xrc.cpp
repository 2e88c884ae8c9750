// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's answers about XRC domains of files.
#include <utility>

#include "provider/dappled/server.hpp"

namespace dapple::dappled {

void Server::answer_xrc_open(Connection& connection, const soft::XrcOpenRequest& request,
                             soft::Descriptors& descriptors) {
  // A member that comes back has the memory already.
  const bool returns = static_cast<bool>(descriptors.fds[1]);
  soft::Problem problem;
  soft::XrcOpenReply message;
  const int memory =
      xrc_domains_.open(number_of(connection), request.device, request.flags, std::move(descriptors.fds[0]),
                        std::move(descriptors.fds[1]), message.outcome, problem);
  if (memory < 0 && message.outcome == soft::XrcOutcome::kOpen) return refuse(connection, problem);
  reply(connection, message, {&memory, memory < 0 || returns ? 0U : 1U});
}

void Server::answer_xrc_close(Connection& connection, const soft::XrcCloseRequest& request, soft::Descriptors&) {
  xrc_domains_.close(number_of(connection), {request.device, {request.file_device, request.file_inode}});
  soft::HeaderOnly message;
  reply(connection, message);
}

}  // namespace dapple::dappled
