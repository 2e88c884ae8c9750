// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The identity that a program has chosen, and what it is told of the devices.
#include <errno.h>
#include <string.h>

#include <cassert>

#include "provider/dappled/server.hpp"
#include "provider/face/identity/profile_file.hpp"
#include "provider/face/identity/rail_netdev.hpp"

namespace dapple::dappled {

void Server::answer_identity(Connection& connection, const soft::IdentityRequest& request,
                             soft::Descriptors& descriptors) {
  const std::string_view text(request.text, strnlen(request.text, sizeof request.text));
  // This process' files are not the program's: it may read others, or see other folders.
  face::ProfileFiles files(descriptors.count == 1 ? descriptors.fds[0].get() : face::ProfileFiles::kNoPaths);
  soft::Problem problem;
  const uint32_t view = views_.take(text, files, problem);
  if (view == Views::kDefault) {
    const soft::Problem reason = problem;
    problem.set(reason.error, "DAPPLE_AS: %.200s", reason.line);
    return refuse(connection, problem);
  }
  if (!divide_netdev(view, problem)) {
    views_.leave(view);
    return refuse(connection, problem);
  }
  // A tree that this connection has asked for shows other devices.
  end_export(connection);
  const Sight before = sight_of(connection);
  connection.view = view;
  if (views_.attributes(view).gid_twins != 0 && connection.gid_order == GidOrders::kOwn) {
    connection.gid_order = GidOrders::kTwins;
  }
  leave_sight(before);
  views_.leave(before.first);
  soft::HeaderOnly message;
  reply(connection, message);
}

bool Server::divide_netdev(uint32_t view, soft::Problem& problem) {
  const soft::Rails& rails = views_.rails(view);
  if (rails.count == 0) return true;
  if (const int error = refresh_devices(); error != 0) {
    problem.set(error, "dappled cannot read the network interfaces: %s", strerror(error));
    return false;
  }
  std::vector<face::RailNetdev> netdevs(netdevs_.count);
  for (uint32_t i = 0; i < netdevs_.count; i++) {
    const Netdev& netdev = netdevs_.devices[i];
    netdevs[i].name = netdev.name;
    netdevs[i].loopback = netdev.loopback;
    for (uint32_t k = 0; k < netdev.address_count; k++) netdevs[i].add(netdev.addresses[k]);
  }
  soft::Problem reason;
  soft::Rails all = rails;
  all.count = views_.most_devices(rails);
  assert(all.count >= rails.count);
  if (!face::check_rails(rails, netdevs, reason) || !devices_.divide(all, netdevs_, reason)) {
    problem.set(reason.error, "DAPPLE_AS: %.200s", reason.line);
    return false;
  }
  if (devices_.generation() != told_generation_) tell_changes();
  return true;
}

void Server::answer_device(Connection& connection, const soft::DeviceRequest& request, soft::Descriptors&) {
  if (const int error = refresh_devices(); error != 0) return refuse_devices(connection, error);
  connection.told = false;
  const soft::DeviceInfo* device = devices_.find(request.index);
  soft::DeviceReply message;
  if (device != nullptr) message.device = *device;
  if (device == nullptr || !show(sight_of(connection), message.device)) {
    soft::Problem problem;
    problem.set(ENODEV, "the device's network interface is gone");
    return refuse(connection, problem);
  }
  reply(connection, message);
}

}  // namespace dapple::dappled
