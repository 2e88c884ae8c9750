// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/world.hpp"

#include <algorithm>
#include <cstring>

namespace dapple::sim {

using roce::CompletionStatus;
using roce::QpState;
using roce::QpType;
using roce::Time;

namespace {

// The time after the chaos: enough for every retry of the slowest timer.
constexpr Time kPatience = 200'000 * kMillisecond;
// The limit of events; a run has a few thousand.
constexpr uint64_t kMaxHappenings = 400'000;

}  // namespace

World::World(uint64_t seed, WorldKind kind, Arena& arena, Referee& referee)
    : seed_(seed),
      random_(seed),
      plan_(random_, kind),
      referee_(referee),
      network_(plan_, random_, referee,
               [this](Time time, Flight&& flight) {
                 auto kept = std::make_shared<Flight>(std::move(flight));
                 at(time, [this, kept] { arrive(*kept); });
               }),
      workload_(seed, random_, plan_, referee) {
  make_nodes(arena);
  if (kind == WorldKind::kExtended) {
    make_extended();
    if (random_.in_thousand(300)) make_pair(QpType::kRc);
  } else {
    const uint64_t reliable = random_.between(1, 3);
    for (uint64_t i = 0; i < reliable; ++i) make_pair(QpType::kRc);
    if (random_.in_thousand(300)) make_pair(QpType::kUc);
    if (random_.in_thousand(300)) make_datagrams();
  }
  for (const auto& party : parties_) plan_work(*party);
  plan_faults();
}

void World::at(Time time, std::function<void()> act) {
  happenings_.push({time, ++last_number_, std::move(act)});
}

void World::run() {
  at(plan_.chaos_ends, [this] { end_chaos(); });
  uint64_t count = 0;
  while (!referee_.failed() && step())
    if (++count > kMaxHappenings) referee_.fail("the run does not end");
  if (!referee_.failed()) check_end();
}

bool World::step() {
  Party* due = nullptr;
  Time when = happenings_.empty() ? roce::kNever : happenings_.top().time;
  for (const auto& party : parties_) {
    const Time expiry = party->expiry();
    if (expiry >= when) continue;
    when = expiry;
    due = party.get();
  }
  if (when == roce::kNever) return false;
  referee_.now = std::max(referee_.now, when);
  if (referee_.now > plan_.chaos_ends + kPatience) {
    referee_.fail("the faults have ended long ago, and there are still events");
    return false;
  }
  if (due != nullptr) {
    const Time before = due->qp().deadline();
    due->expire();
    pump(*due);
    if (due->qp().deadline() == before && before <= referee_.now)
      referee_.fail("QP %#x: its deadline stays where it was", due->config().qpn);
    return true;
  }
  const auto act = happenings_.top().act;
  happenings_.pop();
  act();
  return true;
}

void World::pump(Party& party) {
  if (party.pump()) at(referee_.now + random_.between(1, 20) * kMicrosecond, [this, &party] { pump(party); });
  if (chaos_is_over_) top_up(party);
  if (party.drained && !party.resume_is_planned) {
    party.resume_is_planned = true;
    at(referee_.now + random_.below(kMillisecond), [this, &party] { resume(party); });
  }
  if (party.qp().state() == QpState::kSqe) recover(party);
}

void World::arrive(const Flight& flight) {
  const bool is_intact = network_.is_intact(flight);
  referee_.note("arrive", flight.from << 8 | flight.to, flight.icrc, is_intact);
  roce::Packet packet;
  if (!is_intact || roce::parse(flight.transport, packet) != roce::ParseError::kNone) return;
  Party* party = party_of(packet.headers.destination_qpn);
  if (party == nullptr || party->node().number != flight.to) return;
  party->arrived(flight);
  pump(*party);
}

Party* World::party_of(uint32_t qpn) {
  for (const auto& party : parties_)
    if (party->config().qpn == qpn) return party.get();
  return nullptr;
}

Stream* World::stream_to(uint32_t qpn) {
  Party* party = party_of(qpn);
  if (party != nullptr && party->peer != nullptr) return &party->peer->stream();
  referee_.fail("QP %#x, which has no peer, accesses memory", qpn);
  return nullptr;
}

void World::remote_written(uint32_t qpn, uint64_t address, std::span<const std::byte> bytes) {
  if (Stream* stream = stream_to(qpn)) stream->remote_written(address, bytes);
}

void World::remote_read(uint32_t qpn, uint64_t address, std::span<const std::byte> bytes) {
  if (Stream* stream = stream_to(qpn)) stream->remote_read(address, bytes);
}

void World::remote_atomic(uint32_t qpn, const AtomicAccess& access) {
  if (Stream* stream = stream_to(qpn)) stream->remote_atomic(access);
}

void World::remote_flushed(uint32_t qpn, const roce::RemoteRange& range) {
  if (Stream* stream = stream_to(qpn)) stream->remote_flushed(range);
}

void World::gathered(uint32_t qpn, std::span<const roce::Segment> segments) {
  if (Party* party = party_of(qpn)) party->stream().gathered(segments);
}

// The program may use the memory of a queue's receives again when it has destroyed the queue.
void World::scattered(uint32_t qpn) {
  const Party* party = party_of(qpn);
  const XrcQueue* queue = party == nullptr ? nullptr : party->selected();
  if (queue != nullptr && queue->is_destroyed)
    referee_.fail("QP %#x wrote to a receive of queue %#x, which was destroyed", qpn, queue->number);
}

bool World::is_late(uint32_t qpn) {
  if (plan_.late == 0 || chaos_is_over_) return false;
  const Party* party = party_of(qpn);
  return party != nullptr && party->is_receiver_of_xrc() && random_.in_thousand(plan_.late);
}

// --- Queue pairs in trouble

void World::drain(Party& party) {
  if (party.qp().state() != QpState::kRts) return;
  party.move(QpState::kSqd);
  pump(party);
}

// IBTA 10.3.1.6: only the send queue has stopped.
void World::recover(Party& party) {
  at(referee_.now + random_.below(kMillisecond), [this, &party] {
    if (party.qp().state() != QpState::kSqe) return;
    party.move(QpState::kRts);
    party.stream().is_broken = false;
    pump(party);
  });
}

void World::resume(Party& party) {
  party.resume_is_planned = false;
  if (party.qp().state() != QpState::kSqd) return;
  party.move(QpState::kRts);
  pump(party);
}

void World::throw_into_error(Party& party) {
  party.move(QpState::kError);
  pump(party);
  if (party.peer != nullptr && random_.in_thousand(plan_.reconnects))
    at(referee_.now + random_.below(5 * kMillisecond), [this, &party] { reconnect(party); });
}

void World::reconnect(Party& party) {
  for (Party* each : {&party, party.peer}) {
    each->move(QpState::kReset);
    if (each->qp().deadline() != roce::kNever)
      referee_.fail("QP %#x has a deadline in the reset state", each->config().qpn);
    ++each->life;
    each->target.window = each->target.window_slot = 0;
    each->target.window_is_bound = false;
    if (each->is_receiver_of_xrc()) give_window(*each);
  }
  connect(party, *party.peer);
}

void World::end_chaos() {
  network_.has_faults = false;
  chaos_is_over_ = true;
  for (Node& node : nodes_) node.memory->broken = false;
  for (const auto& party : parties_) party->late = 0;
  for (const auto& party : parties_) top_up(*party);
}

void World::top_up(Party& party) {
  constexpr size_t kEnough = 4;
  if (party.qp().state() == QpState::kError || party.config().type == QpType::kXrcSend) return;
  if (party.domain == nullptr) {
    while (party.receives().posted_count() < kEnough) party.receives().post();
    return;
  }
  for (XrcQueue& queue : party.domain->queues())
    while (!queue.is_destroyed && queue.receives.posted_count() < kEnough) queue.receives.post();
}

void World::check_end() {
  for (const auto& party : parties_) {
    const QpState state = party->qp().state();
    if (plan_.mood != Mood::kWild && state != QpState::kRts)
      return referee_.fail("QP %#x ends in state %u without a reason", party->config().qpn,
                           static_cast<unsigned>(state));
    if (state == QpState::kSqd) return referee_.fail("QP %#x was never drained", party->config().qpn);
    party->check_counters();
    party->stream().check_end(state == QpState::kRts, plan_.mood == Mood::kCalm);
  }
}

}  // namespace dapple::sim
