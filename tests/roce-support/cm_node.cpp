// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/cm_node.hpp"

#include <cstdlib>
#include <utility>

#include "tests/roce-support/cm_samples.hpp"

namespace dapple::roce::cm::test {

namespace {

template <typename Value>
Value value_or_default(const Value* value) {
  return value == nullptr ? Value() : *value;
}

template <typename Value>
Value take_first(std::deque<Value>& queue) {
  // A test that expects one more event than there are.
  if (queue.empty()) std::abort();
  Value first = std::move(queue.front());
  queue.pop_front();
  return first;
}

}  // namespace

Attribute Datagram::attribute() const {
  MadView view;
  return open_mad(mad, view) == MadError::kNone ? view.attribute : Attribute{};
}

Node::Node(uint8_t number, const Limits& limits, uint64_t seed) : number_(number), random_(seed * 1000 + number) {
  cm = Manager::create(limits, *this);
}

Path Node::path_to(uint8_t peer) const {
  return {
      .device = 1U + number_, .ca_guid = 0xCA000000U + number_, .local = ipv4_gid(number_), .remote = ipv4_gid(peer)};
}

uint64_t Node::random() {
  // splitmix64
  uint64_t value = random_ += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

void Node::event(const Event& event) {
  events.push_back({event.type,
                    event.last,
                    event.id,
                    event.user,
                    event.listener,
                    *event.path,
                    value_or_default(event.req),
                    value_or_default(event.rep),
                    value_or_default(event.sidr_rep),
                    event.ip != nullptr,
                    value_or_default(event.ip),
                    event.reason,
                    {event.info.begin(), event.info.end()},
                    {event.private_data.begin(), event.private_data.end()}});
}

void Node::take(Time now, const Datagram& datagram) {
  Path path = path_to(number_);
  path.remote = datagram.path.local;
  cm->receive(now, path, datagram.mad);
}

Datagram Node::sent() {
  return take_first(out);
}

SeenEvent Node::seen() {
  return take_first(events);
}

}  // namespace dapple::roce::cm::test
