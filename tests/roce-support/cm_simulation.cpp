// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/cm_simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/roce-support/cm_samples.hpp"

namespace dapple::roce::cm::test {

namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kSecond = 1'000'000'000;
// Less than a packet's lifetime of 2^16 * 4.096 µs, on which time wait depends.
constexpr Time kMaxDelay = 250 * kMillisecond;
constexpr Time kActivity = 60 * kSecond;
constexpr uint16_t kPort = 7174;

const char* name_of(EventType type) {
  constexpr const char* kNames[] = {"connect request", "response",      "established",  "rejected",  "unreachable",
                                    "disconnected",    "timewait exit", "SIDR request", "SIDR reply"};
  return kNames[static_cast<size_t>(type)];
}

}  // namespace

Simulation::Simulation(uint64_t seed, uint8_t hosts, unsigned connections, bool verbose)
    : random_(seed), verbose_(verbose) {
  loss_ = static_cast<unsigned>(random(21));
  repetition_ = static_cast<unsigned>(random(21));
  blackout_begin_ = now_ + random(kActivity);
  blackout_end_ = blackout_begin_ + random(15 * kSecond);
  for (uint8_t i = 0; i < hosts; ++i) {
    Place& place = places_.emplace_back();
    place.node = std::make_unique<Node>(i, Limits{}, seed);
    ListenParameters parameters;
    parameters.service_id = service_id_of(PortSpace::kTcp, kPort);
    place.node->cm->listen(parameters, place.listener);
    parameters.service_id = service_id_of(PortSpace::kUdp, kPort);
    parameters.datagram = true;
    place.node->cm->listen(parameters, place.datagram_listener);
  }
  for (unsigned i = 0; i < connections; ++i)
    after(random(kActivity), [this] { begin(random(places_.size()), chance(15)); });
}

uint64_t Simulation::random(uint64_t below) {
  uint64_t value = random_ += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return (value ^ value >> 31) % below;
}

void Simulation::after(Time delay, std::function<void()> act) {
  steps_.push({now_ + delay, ++order_, std::move(act)});
}

void Simulation::fail(const std::string& problem) {
  if (problem_.empty()) problem_ = problem;
}

void Simulation::note(Place& place, Id id, const char* text) {
  ++seen_[text];
  const auto mix = [this](uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001B3; };
  mix(now_);
  mix(id);
  for (const char* at = text; *at != 0; ++at) mix(static_cast<uint8_t>(*at));
  if (verbose_)
    std::printf("%10.3f host %td id %llx %s\n", static_cast<double>(now_) / 1e9, &place - places_.data(),
                static_cast<unsigned long long>(id), text);
}

void Simulation::begin(size_t from, bool datagram) {
  Place& place = places_[from];
  const size_t to = random(places_.size());
  Track track{.active = true, .datagram = datagram, .tag = next_tag_++};
  const Path path = place.node->path_to(static_cast<uint8_t>(to));
  const IpHeader ip = sample_ip_header(false);
  Id id = kNoId;
  Status status;
  if (datagram) {
    SidrReq request;
    request.service_id = service_id_of(PortSpace::kUdp, kPort);
    write_ip_header(ip, request.private_data);
    std::memcpy(&request.private_data[kIpHeaderSize], &track.tag, sizeof track.tag);
    status = place.node->cm->resolve(now_, 0, path, request, 18, 15, id);
  } else {
    Req req;
    // Some are for a port without a listener.
    req.service_id = service_id_of(PortSpace::kTcp, chance(5) ? 1 : kPort);
    req.qpn = 2 * track.tag;
    req.remote_response_timeout = static_cast<uint8_t>(18 + random(3));
    req.local_response_timeout = static_cast<uint8_t>(18 + random(3));
    write_ip_header(ip, req.private_data);
    std::memcpy(&req.private_data[kIpHeaderSize], &track.tag, sizeof track.tag);
    status = place.node->cm->connect(now_, 0, path, req, id);
  }
  if (status != Status::kOk) return fail("no room for a connection");
  place.ids[id] = track;
  note(place, id, "connect");
  if (chance(10)) later(place, id, 20 * kSecond, [this, &place, id](Track&) { end(place, id, Status::kOk); });
  drain(place);
}

void Simulation::drain(Place& place) {
  Node& node = *place.node;
  while (!node.events.empty()) look_at(place, node.seen());
  while (!node.out.empty()) {
    const Datagram datagram = node.sent();
    const bool dark = now_ >= blackout_begin_ && now_ < blackout_end_;
    if (faults_ && (dark || chance(loss_))) continue;
    const unsigned copies = faults_ && chance(repetition_) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) after(1 + random(kMaxDelay), [this, datagram] { deliver(datagram); });
  }
}

void Simulation::deliver(const Datagram& datagram) {
  Place& place = places_[datagram.path.remote[15]];
  place.node->take(now_, datagram);
  drain(place);
}

void Simulation::look_at(Place& place, const SeenEvent& event) {
  note(place, event.id, name_of(event.type));
  const bool request = event.type == EventType::kConnectRequest || event.type == EventType::kSidrRequest;
  if (request) {
    Track track;
    track.datagram = event.type == EventType::kSidrRequest;
    std::memcpy(&track.tag, event.private_data.data(), sizeof track.tag);
    if (!place.ids.emplace(event.id, track).second) fail("an id was given twice");
  }
  const auto found = place.ids.find(event.id);
  if (found == place.ids.end()) return fail(std::string("an event for a destroyed id: ") + name_of(event.type));
  if (!request) check_order(found->second, event);
  react(place, event, found->second);
}

void Simulation::check_order(const Track& track, const SeenEvent& event) {
  const auto in = [&](std::initializer_list<Phase> phases) {
    return std::find(phases.begin(), phases.end(), track.phase) != phases.end();
  };
  bool allowed = false;
  bool last = false;
  switch (event.type) {
    case EventType::kResponse:
      allowed = track.active && in({Phase::kRequested});
      break;
    case EventType::kEstablished:
      allowed = !track.active && in({Phase::kAnswered});
      break;
    case EventType::kRejected:
      allowed = in({Phase::kRequested, Phase::kAnswered, Phase::kResponded, Phase::kEstablished});
      // If the peer may have used the queue pair, or reports ours as in use, time wait follows.
      last = event.reason != RejectReason::kStaleConnection && in({Phase::kRequested, Phase::kAnswered});
      break;
    case EventType::kUnreachable:
      allowed = track.active ? in({Phase::kRequested}) : in({Phase::kAnswered});
      last = true;
      break;
    case EventType::kDisconnected:
      allowed = in({Phase::kAnswered, Phase::kResponded, Phase::kEstablished, Phase::kDisconnecting});
      break;
    case EventType::kTimewaitExit:
      allowed = in({Phase::kOver});
      last = true;
      break;
    case EventType::kSidrReply:
      allowed = track.active && track.datagram && in({Phase::kRequested});
      last = true;
      break;
    default:
      break;
  }
  if (!allowed) fail(std::string("an event out of order: ") + name_of(event.type));
  if (last != event.last) fail(std::string("the last event is another: ") + name_of(event.type));
}

void Simulation::later(Place& place, Id id, Time within, std::function<void(Track&)> act) {
  after(random(within), [this, &place, id, act = std::move(act)] {
    const auto found = place.ids.find(id);
    if (found == place.ids.end()) return;
    act(found->second);
    drain(place);
  });
}

void Simulation::end(Place& place, Id id, Status status) {
  if (status != Status::kOk) fail("a command was refused");
  note(place, id, "destroy");
  if (place.node->cm->destroy(now_, id) != Status::kOk) fail("destroy() was refused");
  place.ids.erase(id);
}

void Simulation::react(Place& place, const SeenEvent& event, Track& track) {
  Manager& cm = *place.node->cm;
  const Id id = event.id;
  // Some consumers are slower than the peer's time-out.
  const Time pace = chance(20) ? 20 * kSecond : 100 * kMillisecond;
  const unsigned choice = static_cast<unsigned>(random(100));
  const auto live_on = [this, &place, &cm, id, choice] {
    if (choice < 50)
      later(place, id, 30 * kSecond, [this, &place, &cm, id](Track& now) {
        if (now.phase != Phase::kEstablished) return;
        now.phase = Phase::kDisconnecting;
        note(place, id, "disconnect");
        if (cm.disconnect(now_, id, {}) != Status::kOk) fail("disconnect() was refused");
      });
    else if (choice < 70)
      later(place, id, 30 * kSecond, [this, &place, id](Track&) { end(place, id, Status::kOk); });
  };
  switch (event.type) {
    case EventType::kConnectRequest:
      return later(place, id, pace, [this, &place, &cm, id, choice](Track& now) {
        if (now.phase != Phase::kRequested) return;
        if (choice < 70) {
          now.phase = Phase::kAnswered;
          note(place, id, "accept");
          Rep rep;
          rep.qpn = 2 * now.tag + 1 + (static_cast<uint32_t>(id >> 32) << 12);
          if (cm.accept(now_, id, rep) != Status::kOk) fail("accept() was refused");
          if (choice < 10) later(place, id, kSecond, [this, &place, id](Track&) { end(place, id, Status::kOk); });
        } else if (choice < 85) {
          now.phase = Phase::kEnded;
          note(place, id, "reject");
          if (cm.reject(now_, id, RejectReason::kConsumer, {}, {}) != Status::kOk) fail("reject() was refused");
        } else {
          end(place, id, Status::kOk);
        }
      });
    case EventType::kResponse:
      track.phase = Phase::kResponded;
      return later(place, id, pace, [this, &place, &cm, id, choice, live_on](Track& now) {
        if (now.phase != Phase::kResponded) return;
        if (choice % 10 == 0) return end(place, id, Status::kOk);
        if (choice % 10 == 1) {
          now.phase = Phase::kEnded;
          note(place, id, "reject");
          if (cm.reject(now_, id, RejectReason::kConsumer, {}, {}) != Status::kOk) fail("reject() was refused");
          return;
        }
        now.phase = Phase::kEstablished;
        note(place, id, "establish");
        if (cm.establish(now_, id, {}) != Status::kOk) fail("establish() was refused");
        live_on();
      });
    case EventType::kEstablished:
      track.phase = Phase::kEstablished;
      return live_on();
    case EventType::kSidrRequest:
      return later(place, id, pace, [this, &place, &cm, id, choice](Track& now) {
        if (choice < 20) return end(place, id, Status::kOk);
        now.phase = Phase::kEnded;
        note(place, id, "answer");
        if (cm.answer(now_, id, {}) != Status::kOk) fail("answer() was refused");
      });
    default:
      track.phase = event.last ? Phase::kLast : Phase::kOver;
      if (choice < 50) later(place, id, pace, [this, &place, id](Track&) { end(place, id, Status::kOk); });
  }
}

void Simulation::run_until_quiet(Time limit) {
  while (problem_.empty()) {
    Time next = steps_.empty() ? kNever : steps_.top().at;
    Place* waiting = nullptr;
    for (Place& place : places_) {
      if (place.node->cm->deadline() >= next) continue;
      next = place.node->cm->deadline();
      waiting = &place;
    }
    if (next == kNever) return;
    if (next < now_) return fail("a deadline in the past");
    if (next > limit) return fail("no end");
    now_ = next;
    if (now_ > kSecond + kActivity) faults_ = false;
    if (waiting != nullptr) {
      waiting->node->cm->advance(now_);
      if (waiting->node->cm->deadline() <= now_) return fail("a deadline that stays");
      drain(*waiting);
    } else {
      const std::function<void()> act = steps_.top().act;
      steps_.pop();
      act();
    }
  }
}

void Simulation::check_agreement() {
  // The active ends of established connections, minus the passive ones.
  std::map<uint32_t, int> balance;
  for (Place& place : places_) {
    for (const auto& [id, track] : place.ids) {
      if (track.phase == Phase::kEstablished) balance[track.tag] += track.active ? 1 : -1;
      const bool stays =
          track.phase == Phase::kEstablished || track.phase == Phase::kLast || track.phase == Phase::kEnded;
      if (!stays) return fail("an id without its last event");
    }
    if (place.node->cm->counters().stale != 0) return fail("a connection was taken for a stale one");
  }
  for (const auto& [tag, difference] : balance) {
    if (difference == 0)
      ++seen_["both connected"];
    else
      fail("connection " + std::to_string(tag) + " lasts at one end only");
  }
}

std::string Simulation::run() {
  run_until_quiet(kSecond + kActivity + 3600 * kSecond);
  if (problem_.empty()) check_agreement();
  for (Place& place : places_) {
    while (!place.ids.empty() && problem_.empty()) end(place, place.ids.begin()->first, Status::kOk);
    drain(place);
  }
  run_until_quiet(now_ + 3600 * kSecond);
  for (Place& place : places_) {
    const Manager& cm = *place.node->cm;
    if (problem_.empty() && (cm.records() != 0 || cm.remembered() != 0 || cm.half_open() != 0))
      fail("something is left");
  }
  return problem_;
}

}  // namespace dapple::roce::cm::test
