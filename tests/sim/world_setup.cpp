// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Builds a world from its seed.
#include <algorithm>

#include "tests/sim/world.hpp"

namespace dapple::sim {

using roce::CompletionStatus;
using roce::QpState;
using roce::QpType;
using roce::Time;

namespace {

constexpr size_t kNodeBytes = 4 << 20;
constexpr uint32_t kForeignDomain = 8;
constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kAllRights = roce::kLocalWrite | roce::kRemoteWrite | roce::kRemoteRead | roce::kRemoteAtomic |
                                roce::kWindowBind | roce::kFlushGlobal | roce::kFlushPersistent;
constexpr uint32_t kMtus[] = {256, 512, 1024, 2048, 4096};

bool is_extended(QpType type) {
  return type == QpType::kXrcSend || type == QpType::kXrcReceive;
}

uint64_t base_of(uint32_t node) {
  return uint64_t{node + 1} << 32;
}

}  // namespace

void World::make_nodes(Arena& arena) {
  arena.resize(kNodeBytes * 4);
  for (uint32_t number = 0; number < plan_.nodes; ++number) {
    Node node;
    node.number = number;
    const std::span<std::byte> bytes = std::span(arena).subspan(number * kNodeBytes, kNodeBytes);
    node.memory = std::make_unique<SimMemory>(base_of(number), bytes, *this);
    Key key;
    key.domain = kDomain;
    key.address = base_of(number);
    key.length = kNodeBytes;
    key.access = roce::kLocalWrite | roce::kWindowBind;
    node.local_key = node.memory->add_key(key);
    node.revocable_local_key = node.memory->add_key(key);
    if (random_.in_thousand(400)) {
      node.shared_receives = std::make_unique<Receives>(referee_, random_, *node.memory, kReceiveSize, true);
      node.shared_receives->keys = {node.local_key};
    }
    nodes_.push_back(std::move(node));
  }
}

// Its own receives, or those of its node.
Receives& World::receives_for(Party& party) {
  Node& node = party.node();
  if (party.config().shared_receives) return *node.shared_receives;
  const uint32_t size = party.config().type == QpType::kUd ? 4096 + roce::kGrhSize : kReceiveSize;
  own_receives_.push_back(std::make_unique<Receives>(referee_, random_, *node.memory, size, false));
  Receives& receives = *own_receives_.back();
  receives.keys = {node.local_key};
  if (plan_.revocations > 0 && random_.in_thousand(200)) receives.keys.push_back(node.revocable_local_key);
  return receives;
}

// domain: of the receiving end of XRC.
Party& World::make_party(QpType type, Node& node, XrcDomain* domain) {
  roce::QpConfig config;
  config.qpn = 0x10001 + static_cast<uint32_t>(parties_.size()) * 0x2F3;
  config.type = type;
  config.domain = kDomain;
  config.send_depth = static_cast<uint32_t>(random_.between(1, 16));
  config.max_send_segments = static_cast<uint32_t>(random_.between(1, 4));
  config.max_inline = static_cast<uint32_t>(random_.below(300));
  config.max_receive_segments = kReceiveSegments;
  config.signal_all = random_.in_thousand(200);
  config.datagram_mtu = random_.one_of(kMtus);
  config.shared_receives = domain != nullptr || (!is_extended(type) && type != QpType::kUd &&
                                                 node.shared_receives != nullptr && random_.in_thousand(700));
  parties_.push_back(std::make_unique<Party>(referee_, random_, network_, node, config));
  Party& party = *parties_.back();
  party.parties = &parties_;
  if (random_.in_thousand(300)) party.sink_room = static_cast<uint32_t>(random_.between(1, 8));
  if (random_.in_thousand(300)) party.expiry_delay = random_.between(1, 500) * kMicrosecond;
  if (plan_.mood == Mood::kWild)
    party.receive_excuses =
        status_bit(CompletionStatus::kLocalAccess) | status_bit(CompletionStatus::kRemoteInvalidRequest);

  if (domain != nullptr) {
    party.domain = domain;
    party.late = plan_.late;
  }
  Receives& receives = domain != nullptr ? domain->queues().front().receives : receives_for(party);
  receives.segments = static_cast<uint32_t>(random_.between(1, kReceiveSegments));
  if (plan_.bad_requests > 0 && type != QpType::kUd && random_.in_thousand(200)) receives.short_ones = 50;
  // No random number of the run: with and without observers a queue pair must do the same.
  const bool observed = (mixed(seed_ ^ config.qpn) & 1) != 0;
  if (!party.create(receives, observed)) referee_.fail("no memory for a queue pair");
  return party;
}

void World::make_pair(QpType type) {
  Party& a = make_party(type, random_.one_of(nodes_));
  Party& b = make_party(type, random_.one_of(nodes_));
  a.peer = &b;
  b.peer = &a;
  make_target(a);
  make_target(b);
  connect(a, b);
}

void World::make_target(Party& party) {
  SimMemory& memory = *party.node().memory;
  Target& target = party.target;
  target.address = memory.allocate(Target::kSize);
  for (uint32_t i = 0; i < Target::kSize; ++i) *memory.at(target.address + i) = content_byte(target.address, i);
  Key key;
  key.domain = kDomain;
  key.address = target.address;
  key.length = Target::kSize;
  key.access = kAllRights;
  target.key = memory.add_key(key);
  target.revocable_key = memory.add_key(key);
  key.access = roce::kRemoteRead;
  target.read_only_key = memory.add_key(key);
  key.access = kAllRights;
  key.domain = kForeignDomain;
  target.foreign_key = memory.add_key(key);
  if (is_extended(party.config().type)) {
    key.domain = kOtherDomain;
    target.other_key = memory.add_key(key);
  }
  key.domain = kDomain;
  key.window = true;
  key.live = false;
  target.window_slot = memory.add_key(key);
}

void World::connect(Party& a, Party& b) {
  const uint32_t mtu = random_.one_of(kMtus);
  const bool retries_for_ever = plan_.mood != Mood::kWild;
  const uint32_t reads = static_cast<uint32_t>(random_.between(1, 16));
  for (Party* party : {&a, &b}) {
    roce::QpAttributes& attributes = party->attributes;
    attributes.access = kAllRights;
    attributes.path_mtu = mtu;
    attributes.destination_qpn = party->peer->config().qpn;
    // Long enough that no request is repeated only because its answer takes time.
    attributes.timeout = static_cast<uint8_t>(random_.between(retries_for_ever ? 12 : 8, 15));
    attributes.retry_count = static_cast<uint8_t>(retries_for_ever ? 7 : random_.below(8));
    attributes.rnr_retry = static_cast<uint8_t>(retries_for_ever ? 7 : random_.between(0, 7));
    attributes.min_rnr_timer = static_cast<uint8_t>(random_.between(1, 20));
    // PSNs often start close to their wrap-around.
    attributes.send_psn =
        static_cast<uint32_t>(random_.in_thousand(500) ? 0xFFFFFF - random_.below(30) : random_.below(1 << 24));
    attributes.max_rd_atomic = static_cast<uint8_t>(random_.between(1, reads));
    attributes.max_dest_rd_atomic = static_cast<uint8_t>(reads);
  }
  a.attributes.receive_psn = b.attributes.send_psn;
  b.attributes.receive_psn = a.attributes.send_psn;
  for (Party* party : {&a, &b}) {
    party->begin_stream(excuses(*party));
    party->move(QpState::kInit);
    party->move(QpState::kRtr);
    const Time when = referee_.now + (random_.in_thousand(300) ? random_.below(kMillisecond) : 0);
    at(when, [this, party, life = party->life] {
      if (party->life != life || party->qp().state() != QpState::kRtr) return;
      party->move(QpState::kRts);
      pump(*party);
    });
  }
}

Statuses World::excuses(const Party& party) const {
  if (plan_.mood != Mood::kWild) return 0;
  Statuses excuses = status_bit(CompletionStatus::kRetryExceeded);
  if (party.attributes.rnr_retry != 7) excuses |= status_bit(CompletionStatus::kRnrRetryExceeded);
  if (party.peer == nullptr) return excuses;
  if (plan_.bad_requests > 0) excuses |= status_bit(CompletionStatus::kRemoteInvalidRequest);
  if (plan_.revocations > 0) excuses |= status_bit(CompletionStatus::kRemoteOperation);
  if (plan_.breakdowns > 0)
    excuses |= status_bit(CompletionStatus::kRemoteOperation) | status_bit(CompletionStatus::kRemoteAccess);
  return excuses;
}

void World::make_datagrams() {
  const uint64_t count = random_.between(2, 3);
  for (uint64_t i = 0; i < count; ++i) {
    Party& party = make_party(QpType::kUd, random_.one_of(nodes_));
    party.attributes.qkey = kQkey;
    party.attributes.send_psn = static_cast<uint32_t>(random_.below(1 << 24));
    party.begin_stream(excuses(party));
    for (const QpState state : {QpState::kInit, QpState::kRtr, QpState::kRts}) party.move(state);
  }
}

void World::plan_work(Party& party) {
  const uint64_t bursts = random_.between(1, 10);
  for (uint64_t i = 0; i < bursts; ++i) {
    if (party.is_receiver_of_xrc()) break;
    at(random_.below(plan_.chaos_ends), [this, &party, count = random_.between(1, 10)] {
      if (party.qp().state() < QpState::kRts) return;
      for (uint64_t post = 0; post < count && !referee_.failed(); ++post)
        if (!workload_.post(party)) break;
      pump(party);
    });
  }
  const uint64_t posts = plan_.starves ? random_.below(4) : 3;
  if (party.config().type == QpType::kXrcSend) return;
  for (uint64_t i = 0; i < posts; ++i) {
    const Time when = plan_.starves ? random_.below(plan_.chaos_ends) : 0;
    at(when, [this, &party, count = random_.between(1, 8)] {
      if (party.domain != nullptr) return post_to(*party.domain);
      for (uint64_t post = 0; post < count; ++post) party.receives().post();
      party.qp().receives_posted();
      pump(party);
    });
  }
}

void World::plan_faults() {
  const auto plan = [this](uint32_t count, auto act) {
    for (uint32_t i = 0; i < count; ++i) at(random_.below(plan_.chaos_ends), act);
  };
  plan(plan_.partitions, [this] {
    const Time until = std::min(plan_.chaos_ends, referee_.now + random_.below(10 * kMillisecond));
    network_.cut(static_cast<uint32_t>(random_.below(plan_.nodes)), static_cast<uint32_t>(random_.below(plan_.nodes)),
                 until);
    referee_.note("partition", until);
  });
  plan(plan_.revocations, [this] {
    Party& party = *random_.one_of(parties_);
    const bool is_local = party.peer == nullptr || random_.in_thousand(300);
    party.node().memory->revoke(is_local ? party.node().revocable_local_key : party.target.revocable_key);
    referee_.note("revoke", party.config().qpn, is_local);
  });
  plan(plan_.errors, [this] { throw_into_error(*random_.one_of(parties_)); });
  plan(plan_.destructions, [this] { destroy_queue(); });
  plan(plan_.drains, [this] { drain(*random_.one_of(parties_)); });
  plan(plan_.breakdowns, [this] {
    Node& node = random_.one_of(nodes_);
    node.memory->broken = true;
    referee_.note("breakdown", node.number);
    at(referee_.now + random_.below(kMillisecond), [&node] { node.memory->broken = false; });
  });
}

}  // namespace dapple::sim
