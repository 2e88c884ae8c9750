// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A host of a connection manager for tests: it keeps the manager's datagrams and events.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "roce/cm/manager.hpp"

namespace dapple::roce::cm::test {

struct Datagram {
  Path path;
  Mad mad{};

  Attribute attribute() const;
};

struct SeenEvent {
  EventType type{};
  bool last = false;
  Id id = kNoId;
  uint64_t user = 0;
  Id listener = kNoId;
  Path path;
  Req req;
  Rep rep;
  SidrRep sidr_rep;
  bool has_ip = false;
  IpHeader ip;
  RejectReason reason{};
  std::vector<std::byte> info;
  std::vector<std::byte> private_data;
};

class Node final : public Host {
 public:
  explicit Node(uint8_t number, const Limits& limits = {}, uint64_t seed = 1);

  Path path_to(uint8_t peer) const;
  Path path_to(const Node& peer) const { return path_to(peer.number_); }

  void send(const Path& path, const Mad& mad) override { out.push_back({path, mad}); }
  uint64_t random() override;
  void event(const Event& event) override;

  // Takes the datagram that `from` has sent to it.
  void take(Time now, const Datagram& datagram);
  // The oldest datagram sent, and the oldest event; both are removed.
  Datagram sent();
  SeenEvent seen();

  std::deque<Datagram> out;
  std::deque<SeenEvent> events;
  std::unique_ptr<Manager> cm;

 private:
  const uint8_t number_;
  uint64_t random_;
};

template <typename Message>
Message message_of(const Datagram& datagram) {
  MadView view;
  Message message;
  if (open_mad(datagram.mad, view) == MadError::kNone) read(view, message);
  return message;
}

}  // namespace dapple::roce::cm::test
