// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's trees: the kernel's files about the devices.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <string_view>

#include "provider/dappled/server.hpp"
#include "provider/dappled/trees/surroundings.hpp"

namespace dapple::dappled {
namespace {

// Nothing tells when a program reads an exported file.
constexpr Milliseconds kExportPeriod = 1000;

bool is_counter(std::string_view path) {
  return path.find("/counters/") != path.npos || path.find("/hw_counters/") != path.npos;
}

// The kernel may have other devices by now.
bool is_class(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "infiniband" || name == "infiniband_verbs" || name == "infiniband_mad";
}

}  // namespace

face::DeviceCounts Server::counts_of(const soft::DeviceInfo& device) const {
  face::DeviceCounts counts;
  for (uint32_t slot = 0; const soft::SlotPages* pages = slots_.counters().at(slot); slot++) {
    const soft::DeviceTraffic* traffic = soft::find_traffic(pages->devices, device.guid);
    if (traffic == nullptr) continue;
    counts.sent_packets += traffic->sent_packets.value() + traffic->same_host_sent_packets.value();
    counts.sent_bytes += traffic->sent_bytes.value();
    counts.received_packets += traffic->received_packets.value();
    counts.received_bytes += traffic->received_bytes.value();
    counts.sequence_naks_sent += traffic->sequence_naks_sent.value();
    counts.rnr_naks_sent += traffic->rnr_naks_sent.value();
    counts.duplicates += traffic->duplicates.value();
    counts.timeouts += traffic->timeouts.value();
    counts.retransmitted_packets += traffic->retransmitted_packets.value();
    counts.dropped_packets += traffic->dropped_packets.value();
  }
  return counts;
}

bool Server::show(Sight sight, soft::DeviceInfo& device) {
  const soft::Rails& rails = views_.rails(sight.first);
  if (!rails.has(device)) return false;
  devices_.show(rails, device);
  views_.show(sight.first, device);
  gid_orders_.show(sight.second, device);
  return true;
}

Server::ShownDevices Server::shown_devices(Sight sight) {
  ShownDevices shown;
  shown.infos.reserve(soft::kMaxDevices);
  for (uint32_t i = 0; i < devices_.count(); i++) {
    shown.infos.push_back(devices_.at(i));
    if (!show(sight, shown.infos.back())) shown.infos.pop_back();
  }
  shown.list.resize(shown.infos.size());
  for (size_t i = 0; i < shown.infos.size(); i++) {
    const soft::DeviceInfo& info = shown.infos[i];
    shown.list[i].info = &info;
    shown.list[i].attributes = &info.attributes;
    shown.list[i].counts = counts_of(info);
    find_netdev_entries(shown.list[i]);
  }
  return shown;
}

void Server::answer_tree(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&) {
  if (const int error = refresh_devices(); error != 0) return refuse_devices(connection, error);
  soft::Problem problem;
  const Sight sight = sight_of(connection);
  ViewTree& tree = trees_[sight];
  if (!tree.bring_up_to_date(shown_devices(sight).list, problem)) return refuse(connection, problem);
  const soft::OwnedFd folder = tree.folder().reopen();
  if (!folder) {
    problem.set(errno, "dappled cannot open %s: %s", tree.folder().path().c_str(), strerror(errno));
    return refuse(connection, problem);
  }
  soft::TreeReply message;
  const std::string& path = tree.folder().path();
  assert(path.size() < sizeof message.path);
  memcpy(message.path, path.c_str(), path.size() + 1);
  const int descriptor = folder.get();
  reply(connection, message, {&descriptor, 1});
}

void Server::answer_refresh_tree(Connection& connection, const soft::RefreshTreeRequest& request, soft::Descriptors&) {
  if (memchr(request.path, '\0', sizeof request.path) == nullptr) return drop_malformed(connection);
  soft::Problem problem;
  int error = refresh_devices();
  const Sight sight = sight_of(connection);
  ViewTree& tree = trees_[sight];
  if (!tree.exists()) {
    error = ESTALE;
  } else if (is_counter(request.path)) {
    error = tree.write_counters(shown_devices(sight).list);
  } else if (is_class(request.path) && !tree.bring_up_to_date(shown_devices(sight).list, problem)) {
    return refuse(connection, problem);
  }
  if (error != 0) {
    problem.set(error, "dappled cannot write %s: %s", request.path, strerror(error));
    return refuse(connection, problem);
  }
  soft::RefreshTreeReply message;
  message.unreadable = tree.is_unreadable(request.path) ? 1 : 0;
  reply(connection, message);
}

void Server::answer_export_tree(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors) {
  soft::Problem problem;
  // This process' rights are this user's alone.
  if (connection.uid != geteuid()) {
    problem.set(EACCES, "the dappled of this network namespace belongs to user %u and writes no files of user %u",
                geteuid(), connection.uid);
    return refuse(connection, problem);
  }
  if (const int error = refresh_devices(); error != 0) return refuse_devices(connection, error);
  end_export(connection);
  soft::HeaderOnly message;
  if (descriptors.count == 0) {
    connection.watches_tree = true;
    tree_watchers_++;
    return reply(connection, message);
  }
  connection.exported.reset(new (std::nothrow) Export(std::move(descriptors.fds[0])));
  if (connection.exported != nullptr) exports_++;
  int error = connection.exported != nullptr ? connection.exported->take_over() : ENOMEM;
  if (error == 0) error = connection.exported->bring_up_to_date(shown_devices(sight_of(connection)).list);
  if (error != 0) {
    end_export(connection);
    problem.set(error, "dappled cannot write the folder: %s", strerror(error));
    return refuse(connection, problem);
  }
  reply(connection, message);
}

void Server::end_export(Connection& connection) {
  if (connection.watches_tree) {
    assert(tree_watchers_ > 0);
    tree_watchers_--;
    connection.watches_tree = false;
  }
  if (connection.exported == nullptr) return;
  assert(exports_ > 0);
  exports_--;
  connection.exported.reset();
}

void Server::tell_trees() {
  soft::Problem problem;
  for (auto& [sight, tree] : trees_) {
    // A program that asks later gets the reason of a failure.
    if (tree.exists()) tree.bring_up_to_date(shown_devices(sight).list, problem);
  }
  next_export_ = 0;
}

void Server::write_exports() {
  if (!writes_regularly() || now() < next_export_) return;
  next_export_ = now() + kExportPeriod;
  refresh_devices();
  for (Connection& connection : connections_) {
    const Sight sight = sight_of(connection);
    if (connection.exported != nullptr) connection.exported->bring_up_to_date(shown_devices(sight).list);
    if (!connection.watches_tree) continue;
    ViewTree& tree = trees_[sight];
    if (tree.exists()) tree.write_counters(shown_devices(sight).list);
  }
}

void Server::leave_sight(Sight sight) {
  // Programs without an identity come and go all the time.
  if (sight == Sight{Views::kDefault, GidOrders::kOwn}) return;
  const auto has_it = [&](const Connection& connection) { return connection.socket && sight_of(connection) == sight; };
  if (std::any_of(std::begin(connections_), std::end(connections_), has_it)) return;
  const auto found = trees_.find(sight);
  if (found == trees_.end()) return;
  found->second.remove();
  trees_.erase(found);
}

void Server::remove_trees() {
  for (auto& [sight, tree] : trees_) tree.remove();
  for (Connection& connection : connections_) end_export(connection);
}

}  // namespace dapple::dappled
