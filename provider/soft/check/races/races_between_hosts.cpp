// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The part of Races about peers on other hosts.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/soft/check/races/races.hpp"
#include "roce/packet/psn.hpp"

namespace dapple::soft::check {

// A queue pair has left the route. The answer there lasts as long as a queue pair uses it.
void Races::leave(const Route& route) {
  if (!hosts_.has(route)) return;
  const auto uses = [&](const auto& one) { return same(one.second.route(), route); };
  if (std::none_of(queue_pairs_.begin(), queue_pairs_.end(), uses)) hosts_.forget(route);
}

// By the peer's own marks, or by the answer of its host. So the peer has one name as long as it is connected.
uint64_t Races::host_of_peer(const QueuePair& queue_pair) const {
  uint64_t number = queue_pair.marks.host();
  if (number == kThisHost) number = hosts_.host(queue_pair.route());
  return number == host_ ? kThisHost : number;
}

Races::Program Races::program_of_peer(const QueuePair& queue_pair) const {
  if (host_of_peer(queue_pair) == kThisHost) return {told_.process_of(queue_pair.connection.peer)};
  Program program = {queue_pair.marks.process()};
  std::copy_n(queue_pair.connection.addresses.destination, 16, program.gid.emplace().begin());
  return program;
}

Races::Program Races::program_of(const NotedAccess& access) const {
  if (host_of(access.name) == kThisHost) return {told_.process_of(qpn_of(access.name))};
  const auto via = queue_pairs_.find(access.via);
  // The queue pair may have another peer by now.
  if (via == queue_pairs_.end() || name_of_peer(via->second) != access.name) return {};
  return program_of_peer(via->second);
}

std::optional<MarkQuestion> Races::question(uint32_t qpn, uint64_t now) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end() || !told_.is_open() || host_ == kThisHost) return std::nullopt;
  return told_.has_peer(found->second.connection) ? std::nullopt : hosts_.due(found->second.route(), now);
}

uint64_t Races::question_time(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end() || told_.has_peer(found->second.connection)) return roce::kNever;
  return hosts_.deadline(found->second.route());
}

void Races::answered(uint32_t qpn, const MarkAnswer& answer) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found != queue_pairs_.end()) hosts_.answered(found->second.route(), answer);
}

bool Races::gives_marks(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  return found != queue_pairs_.end() && host_ != kThisHost && host_of_peer(found->second) != kThisHost;
}

Mark Races::make_mark(Mark::Kind kind, uint64_t stamp) const {
  Mark mark;
  mark.kind = kind;
  mark.process = getpid();
  mark.host = host_;
  mark.sent = now_ns();
  mark.stamp = stamp;
  return mark;
}

std::optional<Mark> Races::mark_of_request(uint32_t qpn, uint32_t psn) {
  const std::lock_guard lock(mutex_);
  const std::optional<ToldRequest> request = told_.own_request(qpn, psn);
  if (!request) return std::nullopt;
  Mark mark = make_mark(Mark::Kind::kRequest, request->stamp);
  mark.psn = request->first_psn;
  mark.extent = request->packets;
  mark.known = request->known;
  // Another program of this host may have written to the pages, which have the request.
  return is_possible(mark) ? std::optional(mark) : std::nullopt;
}

// The initiator finds its request by the stamp, so there is no mark if this program does not know it.
std::optional<Mark> Races::mark_of_result(uint32_t qpn, uint32_t psn, bool is_atomic, uint32_t check) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end()) return std::nullopt;
  const std::optional<ToldRequest> request = found->second.marks.request(psn);
  const std::optional<KnownRequests> known = is_atomic ? told_.own_answer(qpn, psn) : seen_;
  if (!request || !known) return std::nullopt;
  Mark mark = make_mark(Mark::Kind::kAnswer, request->stamp);
  mark.psn = psn;
  mark.extent = check;
  mark.known = *known;
  return mark;
}

std::optional<Mark> Races::mark_of_race(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end() || found->second.races_to_tell.empty()) return std::nullopt;
  const RaceRow race = found->second.races_to_tell.front();
  found->second.races_to_tell.pop_front();
  Mark mark = make_mark(Mark::Kind::kRace, race.stamp);
  mark.extent = race.other_qpn;
  mark.other_process = race.other_process;
  return mark;
}

void Races::take(uint32_t qpn, const Mark& mark) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end() || host_ == kThisHost || mark.host == host_) return;
  QueuePair& queue_pair = found->second;
  if (queue_pair.marks.host() == kThisHost) {
    const uint64_t answered = hosts_.host(queue_pair.route());
    if (answered != kThisHost && answered != mark.host) {
      // Another host may have the address since the answer.
      if (!std::exchange(queue_pair.has_asked_again, true)) hosts_.forget(queue_pair.route());
      return;
    }
  }
  const uint64_t now = now_ns();
  Mark taken = mark;
  const uint64_t slept = now_ns(CLOCK_BOOTTIME) - now;
  take_over(taken, host_, now, slept - std::min(slept, slept_before_));
  queue_pair.marks.add(taken, now);
}

void Races::note_result(uint32_t qpn, uint32_t psn, uint32_t check) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end() || host_of_peer(found->second) == kThisHost) return;
  for (const Request& request : found->second.requests) {
    const int32_t place = roce::psn_distance(psn, request.first_psn);
    if (!request.is_told || place < 0 || static_cast<uint32_t>(place) >= request.packets) continue;
    found->second.marks.note_result(request.stamp, request.first_psn, psn, check);
    return;
  }
}

}  // namespace dapple::soft::check
