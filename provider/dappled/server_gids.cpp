// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The order of GIDs that a program has chosen.
#include <errno.h>

#include "provider/dappled/server.hpp"

namespace dapple::dappled {

void Server::answer_gids(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors) {
  soft::Problem problem;
  if (!descriptors.fds[0]) {
    problem.set(EINVAL, "the question lacks the descriptor of DAPPLE_GIDS' file");
    return refuse(connection, problem);
  }
  const uint32_t order = gid_orders_.take(descriptors.fds[0].get(), problem);
  if (order == GidOrders::kOwn) return refuse(connection, problem);
  // A tree that this connection has asked for shows other devices.
  end_export(connection);
  const Sight before = sight_of(connection);
  connection.gid_order = order;
  leave_sight(before);
  gid_orders_.leave(before.second);
  soft::HeaderOnly message;
  reply(connection, message);
}

void Server::answer_announce_gids(Connection& connection, const soft::AnnounceGidsRequest& request,
                                  soft::Descriptors&) {
  refresh_devices();
  devices_.restore_gids(request);
  const soft::DeviceInfo* found = devices_.find(request.index);
  const soft::Rails& rails = views_.rails(connection.view);
  if (found != nullptr && rails.has(*found)) {
    soft::DeviceInfo device = *found;
    devices_.show(rails, device);
    gid_orders_.restore(connection.gid_order, request, device);
  }
  if (devices_.generation() != told_generation_) tell_changes();
  soft::HeaderOnly message;
  reply(connection, message);
}

}  // namespace dapple::dappled
