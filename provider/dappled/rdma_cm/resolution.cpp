// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// RESOLVE_IP: the source address, the device, and the neighbour whose link-layer address has to be known. Like the
// kernel's, it fails at once without a route, and waits for a neighbour until the program's time is up.
#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr Time kMillisecond = 1'000'000;
// The kernel gives a neighbour up after some seconds; this asks again.
constexpr Time kLookAgain = 1000 * kMillisecond;
// The most looks in one call of advance(), so that other work gets its turn.
constexpr uint32_t kMaxLooks = 64;

}  // namespace

int Service::resolve(Time now, CmId& id, uint32_t timeout_ms) {
  assert(id.state == State::kBound);
  Address source;
  const int error = find_path(id, source);
  if (error == ENODATA) {
    enter(id, State::kAddressQuery);
    // As in the kernel, a negative number of milliseconds means for ever.
    id.give_up_at = timeout_ms <= INT32_MAX ? now + timeout_ms * kMillisecond : roce::kNever;
    look_later(now, id);
    return 0;
  }
  if (error != 0) return refuse_route(error, id);
  finish_resolving(id, source);
  return 0;
}

bool Service::needs_neighbour(const Address& destination) const {
  if (destination.is_multicast()) return false;
  return find_gid(world_.devices(), destination.gid, destination.scope).device == nullptr;
}

int Service::find_path(CmId& id, Address& source) {
  source = id.source;
  if (id.destination.is_any()) {
    // The kernel then takes any device. Here it is lo's, which leads to this host itself.
    if (source.is_any()) source.gid = loopback_address(source.family).gid;
    id.destination.gid = source.gid;
    id.destination.scope = source.scope;
    return 0;
  }
  Address destination = id.destination;
  if (destination.is_multicast() && destination.scope == 0) {
    // A bound id sends to groups from its own netdev. For a group of one link the netdev is all that a route needs.
    const soft::DeviceInfo* device = world_.devices().find(id.device);
    if (device != nullptr) destination.scope = device->netdev_index;
  }
  if (const int error = world_.route(*id.channel, destination, source); error != 0) return error;
  return needs_neighbour(id.destination) ? world_.find_neighbour(source, id.destination, id.neighbour) : 0;
}

void Service::look_later(Time now, CmId& id) {
  assert(id.state == State::kAddressQuery);
  resolving_.set(id, std::min(now + kLookAgain, id.give_up_at));
}

void Service::look_again(Time now, CmId& id) {
  assert(id.state == State::kAddressQuery && id.deadline <= now);
  Address source;
  const int error = find_path(id, source);
  const bool over = now >= id.give_up_at;
  if (error == ENODATA && !over) return look_later(now, id);
  resolving_.cancel(id);
  note(id);
  if (error == 0) return finish_resolving(id, source);
  enter(id, State::kBound);
  add_event(id, EventKind::kAddrError, over ? -ETIMEDOUT : -error);  // no refusal: an event
}

void Service::finish_resolving(CmId& id, const Address& source) {
  if (id.device == 0 && !attach(id, source)) {
    // The command's own id has not left this state.
    if (id.state != State::kBound) enter(id, State::kBound);
    add_event(id, EventKind::kAddrError, -ENODEV);  // no refusal: an event
    return;
  }
  id.source.gid = source.gid;
  id.source.scope = source.scope;
  enter(id, State::kAddressResolved);
  add_event(id, EventKind::kAddrResolved);
}

template <class Condition>
void Service::make_due(Time now, Condition condition) {
  // The heap must not change during a visit, so the ids are collected first.
  CmId* due = nullptr;
  resolving_.visit([&](CmId& id) {
    if (!condition(id)) return;
    id.next_due = due;
    due = &id;
  });
  for (; due != nullptr; due = due->next_due) resolving_.set(*due, now);
}

void Service::neighbour_answers(Time now, const Neighbour& neighbour) {
  make_due(now, [&](const CmId& id) { return id.neighbour == neighbour; });
}

void Service::missed_answers(Time now) {
  make_due(now, [](const CmId&) { return true; });
}

Time Service::deadline() const {
  const CmId* first = resolving_.first();
  const Time next = std::min(manager_->deadline(), doubts_end_);
  return first == nullptr ? next : std::min(next, first->deadline);
}

void Service::advance(Time now) {
  manager_->advance(now);
  for (uint32_t i = 0; i < kMaxLooks; i++) {
    CmId* id = resolving_.first();
    if (id == nullptr || id->deadline > now) break;
    look_again(now, *id);
  }
  if (doubts_end_ <= now) end_doubts(now);
  write_journals();
  assert_consistent();
}

}  // namespace dapple::dappled::rdma_cm
