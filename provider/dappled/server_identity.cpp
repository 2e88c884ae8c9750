// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The identity that a program has chosen, and what it is told of the devices.
#include <errno.h>
#include <string.h>

#include <cassert>

#include "provider/dappled/server.hpp"
#include "provider/face/identity/profile_file.hpp"

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

void Server::answer_device(Connection& connection, const soft::DeviceRequest& request, soft::Descriptors&) {
  if (const int error = refresh_devices(); error != 0) return refuse_devices(connection, error);
  connection.told = false;
  const soft::DeviceInfo* device = devices_.find(request.index);
  if (device == nullptr) {
    soft::Problem problem;
    problem.set(ENODEV, "the device's network interface is gone");
    return refuse(connection, problem);
  }
  soft::DeviceReply message;
  message.device = *device;
  views_.show(connection.view, message.device);
  gid_orders_.show(connection.gid_order, message.device);
  reply(connection, message);
}

}  // namespace dapple::dappled
