// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Extended reliable connections (XRC), their domains and shared receive queues.
#include "tests/sim/world.hpp"

namespace dapple::sim {

using roce::CompletionStatus;
using roce::QpType;

XrcQueue& World::add_queue(Place& place) {
  Key key;
  key.domain = random_.in_thousand(300) ? kOtherDomain : kDomain;
  key.address = place.node->memory->base();
  key.length = place.node->memory->size();
  key.access = roce::kLocalWrite;
  const auto segments = static_cast<uint32_t>(random_.between(1, kReceiveSegments));
  XrcQueue& queue = place.domain->add(key, kReceiveSize, segments);
  if (plan_.bad_requests > 0 && random_.in_thousand(200)) queue.receives.short_ones = 50;
  return queue;
}

void World::make_places() {
  const uint64_t count = random_.between(1, 3);
  for (uint64_t i = 0; i < count; ++i) {
    Place place;
    place.node = &random_.one_of(nodes_);
    // No two domains have one number, so that a number of another domain names nothing.
    const uint32_t first_number = 0x100 + static_cast<uint32_t>(i) * 0x100;
    place.domain = std::make_unique<XrcDomain>(referee_, random_, *place.node->memory, first_number);
    const uint64_t queues = random_.between(1, 3);
    for (uint64_t queue = 0; queue < queues; ++queue) add_queue(place);
    places_.push_back(std::move(place));
  }
}

// Several senders have one domain as their target, each with a queue pair of its own there.
void World::make_extended() {
  make_places();
  const uint64_t count = random_.between(1, 4);
  for (uint64_t i = 0; i < count; ++i) {
    Place& place = random_.in_thousand(500) ? places_.front() : random_.one_of(places_);
    Party& sender = make_party(QpType::kXrcSend, random_.one_of(nodes_));
    Party& receiver = make_party(QpType::kXrcReceive, *place.node, place.domain.get());
    sender.peer = &receiver;
    receiver.peer = &sender;
    make_target(sender);
    make_target(receiver);
    give_window(receiver);
    connect(sender, receiver);
  }
}

// A window that its peer may use and invalidate. The receiving end posts no binds, so another queue pair does.
void World::give_window(Party& receiver) {
  Key window;
  window.domain = kDomain;
  window.address = receiver.target.address;
  window.length = Target::kWriteSize / 2;
  window.access = roce::kRemoteWrite;
  window.window = true;
  window.qpn = receiver.config().qpn;
  receiver.target.window = receiver.target.window_slot = receiver.node().memory->add_key(window);
  receiver.target.window_is_bound = true;
}

void World::destroy_queue() {
  Place& place = random_.one_of(places_);
  XrcQueue& queue = random_.one_of(place.domain->queues());
  if (queue.is_destroyed) return;
  referee_.note("destroy queue", place.node->number, queue.number);
  place.domain->destroy(queue);
  for (const auto& party : parties_) {
    if (party->config().type != QpType::kXrcSend || party->peer->domain != place.domain.get()) continue;
    for (Operation& operation : party->stream().operations())
      if (!operation.completed && operation.request.remote_srq == queue.number)
        operation.excuses |= status_bit(CompletionStatus::kRemoteInvalidRequest);
  }
  if (random_.in_thousand(500)) add_queue(place);
}

void World::post_to(XrcDomain& domain) {
  for (XrcQueue& queue : domain.queues()) {
    const uint64_t count = random_.below(6);
    for (uint64_t post = 0; post < count && !queue.is_destroyed; ++post) queue.receives.post();
  }
}

}  // namespace dapple::sim
