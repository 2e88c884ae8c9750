// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The questions of DaemonLink that only fetch an answer, or ask for a file. It remembers the devices that it was told.
#include <errno.h>
#include <string.h>

#include <utility>

#include "provider/member/daemon_link.hpp"

namespace dapple::soft {

bool DaemonLink::devices(DeviceList& list, Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  DevicesReply reply;
  if (!ask(MessageKind::kDevices, request, reply, nullptr, problem)) return false;
  list.generation = reply.generation;
  list.count = reply.count < kMaxDevices ? reply.count : kMaxDevices;
  memcpy(list.indexes, reply.indexes, sizeof list.indexes);
  return true;
}

bool DaemonLink::device(uint32_t index, DeviceInfo& info, Problem& problem) {
  const Question question(*this);
  DeviceRequest request;
  request.index = index;
  DeviceReply reply;
  if (!ask(MessageKind::kDevice, request, reply, nullptr, problem)) return false;
  info = reply.device;
  info.name[sizeof info.name - 1] = '\0';
  info.netdev[sizeof info.netdev - 1] = '\0';
  remember(info);
  return true;
}

bool DaemonLink::status(StatusReply& status, Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  return ask(MessageKind::kStatus, request, status, nullptr, problem);
}

bool DaemonLink::transports(uint32_t slot, uint32_t first, TransportsReply& reply, Problem& problem) {
  const Question question(*this);
  TransportsRequest request;
  request.slot = slot;
  request.first = first;
  return ask(MessageKind::kTransports, request, reply, nullptr, problem);
}

bool DaemonLink::tree(OwnedFd& folder, char (&path)[kTreePathSize], Problem& problem) {
  const Question question(*this);
  HeaderOnly request;
  TreeReply reply;
  Descriptors received;
  if (!ask(MessageKind::kTree, request, reply, &received, problem)) return false;
  if (received.count != 1) {
    connection_.close();
    problem.set(EPROTO, "dappled handed over no folder");
    return false;
  }
  folder = std::move(received.fds[0]);
  memcpy(path, reply.path, sizeof path);
  path[sizeof path - 1] = '\0';
  return true;
}

bool DaemonLink::refresh_tree(const char* path, bool& unreadable, Problem& problem) {
  RefreshTreeRequest request;
  RefreshTreeReply reply;
  const size_t size = strlen(path);
  if (size >= sizeof request.path) {
    problem.set(ENAMETOOLONG, "the path is too long");
    return false;
  }
  memcpy(request.path, path, size + 1);
  const Question question(*this);
  if (!ask(MessageKind::kRefreshTree, request, reply, nullptr, problem)) return false;
  unreadable = reply.unreadable != 0;
  return true;
}

bool DaemonLink::export_tree(int folder, Problem& problem) {
  const Question question(*this);
  HeaderOnly request, reply;
  return ask(MessageKind::kExportTree, request, reply, nullptr, problem, {&folder, 1});
}

bool DaemonLink::watch_tree(Problem& problem) {
  const Question question(*this);
  HeaderOnly request, reply;
  return ask(MessageKind::kExportTree, request, reply, nullptr, problem);
}

bool DaemonLink::resource_counts(uint32_t device, ResourceCountsReply& reply, Problem& problem) {
  const Question question(*this);
  ResourceCountsRequest request;
  request.device = device;
  return ask(MessageKind::kResourceCounts, request, reply, nullptr, problem);
}

bool DaemonLink::resources(uint32_t device, ResourceKind kind, uint32_t slot, uint32_t first, ResourcesReply& reply,
                           Problem& problem) {
  const Question question(*this);
  ResourcesRequest request;
  request.device = device;
  request.kind = kind;
  request.slot = slot;
  request.first = first;
  return ask(MessageKind::kResources, request, reply, nullptr, problem);
}

bool DaemonLink::cm_ids(uint32_t device, uint64_t after, CmIdsReply& reply, Problem& problem) {
  const Question question(*this);
  CmIdsRequest request;
  request.device = device;
  request.after = after;
  return ask(MessageKind::kCmIds, request, reply, nullptr, problem);
}

bool DaemonLink::hw_counters(uint32_t device, HwCountersReply& reply, Problem& problem) {
  const Question question(*this);
  HwCountersRequest request;
  request.device = device;
  return ask(MessageKind::kHwCounters, request, reply, nullptr, problem);
}

}  // namespace dapple::soft
