// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's answers about the verbs objects and rdma_cm ids of programs. A program writes its rows as it likes; each
// number in them is checked before it is used.
#include <stdio.h>
#include <string.h>

#include <initializer_list>

#include "provider/dappled/server.hpp"
#include "provider/face/counts.hpp"
#include "provider/protocol/resource_messages.hpp"

namespace dapple::dappled {
namespace {

using soft::ResourceKind;
using soft::ResourceRow;

// A number that no object of another program has.
uint32_t number_in(uint32_t slot, uint32_t place) {
  static_assert(soft::kMaxResourceRows < 1 << 10 && soft::kMaxSlots < 1 << 22);
  return place == 0 || place > soft::kMaxResourceRows ? 0 : slot << 10 | place;
}

void make_numbers(uint32_t slot, ResourceRow& row) {
  for (uint32_t* place : {&row.context, &row.pd}) *place = number_in(slot, *place);
  if (row.kind != ResourceKind::kQp) return;
  for (uint32_t* place : {&row.send_cq, &row.receive_cq, &row.srq}) *place = number_in(slot, *place);
}

// As the kernel counts: a queue pair uses a completion queue for each of its queues.
uint32_t users_of(const soft::SlotResources& resources, ResourceKind kind, uint32_t place) {
  uint32_t users = 0;
  ResourceRow row;
  for (uint32_t i = 0; i < soft::end_of_rows(resources); i++) {
    if (!resources.rows[i].read(row)) continue;
    if (kind == ResourceKind::kPd) users += row.pd == place ? 1 : 0;
    if (kind == ResourceKind::kCq && row.kind == ResourceKind::kQp)
      users += (row.send_cq == place ? 1 : 0) + (row.receive_cq == place ? 1 : 0);
  }
  return users;
}

}  // namespace

const Server::Connection* Server::owner_from(uint32_t slot) const {
  const Connection* owner = nullptr;
  for (const Connection& other : connections_) {
    if (!other.socket || other.slot == 0 || other.slot < slot) continue;
    if (owner == nullptr || other.slot < owner->slot) owner = &other;
  }
  return owner;
}

void Server::answer_resource_counts(Connection& connection, const soft::ResourceCountsRequest& request,
                                    soft::Descriptors&) {
  soft::ResourceCountsReply message;
  for (const Connection& other : connections_) {
    const soft::SlotPages* pages = other.socket && other.slot != 0 ? slots_.counters().at(other.slot) : nullptr;
    if (pages == nullptr || request.device == 0) continue;
    for (const soft::ResourceCounts& counts : pages->resources.counts) {
      if (counts.device.load(std::memory_order_relaxed) != request.device) continue;
      for (size_t i = 0; i < soft::kResourceKinds; i++)
        message.counts[i] += counts.counts[i].load(std::memory_order_relaxed);
    }
  }
  message.cm_ids = cm_.count_ids(request.device);
  reply(connection, message);
}

void Server::answer_resources(Connection& connection, const soft::ResourcesRequest& request, soft::Descriptors&) {
  const Connection* owner = owner_from(request.slot);
  const soft::SlotPages* pages = owner == nullptr ? nullptr : slots_.counters().at(owner->slot);
  soft::ResourcesReply message;
  if (pages == nullptr) return reply(connection, message);
  const soft::SlotResources& resources = pages->resources;
  message.slot = owner->slot;
  message.process = static_cast<uint32_t>(owner->process);
  const uint32_t end = soft::end_of_rows(resources);
  message.lacks_rows = end == soft::kMaxResourceRows ? 1 : 0;
  for (uint32_t i = owner->slot == request.slot ? request.first : 0; i < end; i++) {
    if (message.count == soft::ResourcesReply::kRows) {
      message.next = i;
      break;
    }
    soft::ShownResource& shown = message.rows[message.count];
    if (!resources.rows[i].read(shown.row) || shown.row.kind != request.kind || shown.row.device != request.device)
      continue;
    shown.number = number_in(owner->slot, i + 1);
    shown.users = users_of(resources, request.kind, i + 1);
    make_numbers(owner->slot, shown.row);
    message.count++;
  }
  reply(connection, message);
}

void Server::answer_cm_ids(Connection& connection, const soft::CmIdsRequest& request, soft::Descriptors&) {
  soft::CmIdsReply message;
  if (request.device != 0) cm_.list_ids(request, message);
  reply(connection, message);
}

void Server::answer_hw_counters(Connection& connection, const soft::HwCountersRequest& request, soft::Descriptors&) {
  soft::HwCountersReply message;
  const soft::DeviceInfo* found = devices_.find(request.device);
  if (found == nullptr || !views_.rails(connection.view).has(*found)) return reply(connection, message);
  soft::DeviceInfo device = *found;
  views_.show(connection.view, device);
  const face::DeviceCounts counts = counts_of(device);
  for (const face::CounterFile& file : face::hardware_counters(device.attributes.driver)) {
    // Netlink has no period.
    if (strcmp(file.name, "lifespan") == 0 || message.count == soft::HwCountersReply::kCounters) continue;
    soft::HwCounter& counter = message.counters[message.count++];
    snprintf(counter.name, sizeof counter.name, "%s", file.name);
    counter.value = file.count == nullptr ? file.value : counts.*file.count / file.unit;
  }
  reply(connection, message);
}

}  // namespace dapple::dappled
