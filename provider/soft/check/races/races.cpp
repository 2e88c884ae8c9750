// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/races.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/network/namespace_identity.hpp"

namespace dapple::soft::check {
namespace {

using Kind = NotedAccess::Kind;
using roce::SendOpcode;

bool has_result(SendOpcode opcode) {
  return opcode == SendOpcode::kRead || opcode == SendOpcode::kCompareSwap || opcode == SendOpcode::kFetchAdd;
}

}  // namespace

void Races::assert_consistent() const {
  assert_held(mutex_);
  assert(polled_.is_sound() && seen_.is_sound());
  // A program sees what it has polled.
  assert(polled_.floor <= seen_.floor);
  assert(version_ != 0);
}

void Races::QueuePair::assert_consistent() const {
  assert(requests.size() <= kMaxRequests && (requests.empty() || requests.back().stamp <= last_stamp));
  assert(sent.size() <= kMaxCompletions && received.size() <= kMaxCompletions);
  assert(stacks.size() <= kMaxStacks && races_to_tell.size() <= kRaceRows);
}

void Races::open(int file, uint32_t slot, uint64_t identity) {
  const std::lock_guard lock(mutex_);
  if (told_.is_open()) return;
  told_.open(file, slot);
  host_ = host_number(identity != 0 ? identity : soft::namespace_identity());
  const uint64_t since_start = now_ns(CLOCK_BOOTTIME);
  slept_before_ = since_start - std::min(since_start, now_ns());
  cm_notes_ = static_cast<const provider::CmEventNotes*>(dlsym(RTLD_DEFAULT, provider::kCmEventNotes));
}

bool Races::got_cm_event() {
  const uint64_t count = cm_notes_ == nullptr ? 0 : cm_notes_->count.load(std::memory_order_relaxed);
  return std::exchange(cm_events_, count) != count;
}

void Races::meet(uint32_t peer) {
  const std::lock_guard lock(mutex_);
  told_.meet(peer);
}

void Races::see(QueuePairName name, uint64_t stamp, const KnownRequests& known) {
  assert_held(mutex_);
  const bool is_new = seen_.add(known);
  if (seen_.add(name, stamp, now_ns()) || is_new) version_++;
  assert_consistent();
}

void Races::learn(const Lesson& lesson) {
  polled_.add(lesson.known);
  if (lesson.name != 0) polled_.add(lesson.name, lesson.stamp, now_ns());
  if (seen_.add(polled_)) version_++;
  assert_consistent();
}

void Races::assume_all() {
  const uint64_t now = now_ns();
  polled_.add_all_until(now);
  if (seen_.add_all_until(now)) version_++;
  assert_consistent();
}

void Races::connect(uint32_t qpn, uint32_t peer, PollOrder polls) {
  const std::lock_guard lock(mutex_);
  QueuePair& queue_pair = queue_pairs_[qpn];
  const Route before = queue_pair.route();
  queue_pair.connection = {qpn, peer, {}};
  queue_pair.netdev_index = 0;
  queue_pair.polls = polls;
  queue_pair.last_told = {};
  queue_pair.told_races = 0;
  queue_pair.marks = {};
  queue_pair.has_asked_again = false;
  queue_pair.races_to_tell.clear();
  leave(before);
  told_.connect(queue_pair.connection);
  assume_all();
}

void Races::locate(uint32_t qpn, const Route& route) {
  const std::lock_guard lock(mutex_);
  QueuePair& queue_pair = queue_pairs_[qpn];
  const Route before = queue_pair.route();
  queue_pair.connection.addresses = route;
  queue_pair.netdev_index = route.netdev_index;
  told_.locate(queue_pair.connection);
  leave(before);
}

void Races::end(uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  const auto known = queue_pairs_.find(qpn);
  if (known == queue_pairs_.end()) return;
  const QueuePair& ended = known->second;
  const QueuePairName peer = name_of_peer(ended);
  learn({0, qpn, ended.last_stamp, {}});
  if (host_of(peer) == kThisHost) {
    learn({0, peer, now_ns(), {}});
  } else if (ended.marks.last_stamp() != 0) {
    learn({0, peer, ended.marks.last_stamp(), {}});
  }
  told_.disconnect(qpn);
  const Route route = ended.route();
  queue_pairs_.erase(known);
  leave(route);
}

void Races::post(uint32_t qpn, const Post& post, std::span<const Range> memory) {
  const std::lock_guard lock(mutex_);
  if (got_cm_event()) assume_all();
  QueuePair& queue_pair = queue_pairs_[qpn];
  queue_pair.last_stamp = std::max(queue_pair.last_stamp + 1, now_ns());
  queue_pair.requests.push_back({post, queue_pair.last_stamp});
  if (queue_pair.requests.size() > kMaxRequests) queue_pair.requests.pop_front();
  if (posting_ != nullptr) {
    queue_pair.stacks.push_back({queue_pair.last_stamp, post.opcode, *posting_});
    if (queue_pair.stacks.size() > kMaxStacks) queue_pair.stacks.pop_front();
  }
  if (post.is_told) told_.tell(qpn, queue_pair.last_stamp, post.first_psn, post.packets, seen_, version_);
  const NotedAccess access = {.name = qpn,
                              .stamp = queue_pair.last_stamp,
                              .kind = has_result(post.opcode) ? Kind::kWrite : Kind::kRead,
                              .opcode = post.opcode,
                              .is_own = true,
                              .arrived = queue_pair.last_stamp};
  queue_pair.assert_consistent();
  for (const Range& range : memory) history_.add(range.begin, range.end, access, seen_);
}

// Requests complete in order, and a completion tells of the earlier requests, too.
std::vector<Races::Told> Races::sent(uint32_t qpn, uint64_t id, bool is_good) {
  const std::lock_guard lock(mutex_);
  QueuePair& queue_pair = queue_pairs_[qpn];
  std::vector<Told> races = told_races(queue_pair);
  std::deque<Request>& requests = queue_pair.requests;
  const auto done = std::find_if(requests.begin(), requests.end(), [&](const Request& request) {
    return request.id == id && (request.is_signaled || !is_good);
  });
  if (done == requests.end()) return races;
  Lesson lesson = {id, qpn, done->stamp, {}};
  for (auto request = requests.begin(); is_good && request != done + 1; ++request) {
    if (!has_result(request->opcode)) continue;
    const auto answer = host_of_peer(queue_pair) == kThisHost
                            ? told_.answer(queue_pair.connection, request->first_psn, request->packets)
                            : queue_pair.marks.take_answer(request->stamp, request->packets);
    if (answer) {
      lesson.known.add(*answer);
    } else {
      lesson.known.add_all_until(now_ns());
    }
  }
  requests.erase(requests.begin(), done + 1);
  queue_pair.sent.push_back(lesson);
  if (queue_pair.sent.size() > kMaxCompletions) queue_pair.sent.pop_front();
  queue_pair.assert_consistent();
  return races;
}

const Races::PostedAt* Races::QueuePair::find_post(uint64_t stamp) const {
  const auto found =
      std::find_if(stacks.begin(), stacks.end(), [=](const PostedAt& post) { return post.stamp == stamp; });
  return found == stacks.end() ? nullptr : &*found;
}

std::vector<Races::Told> Races::told_races(QueuePair& queue_pair) {
  std::vector<Told> races;
  const bool is_here = host_of_peer(queue_pair) == kThisHost;
  for (const RaceRow& race :
       is_here ? told_.races(queue_pair.connection, queue_pair.told_races) : queue_pair.marks.take_races()) {
    const PostedAt* posted = queue_pair.find_post(race.stamp);
    if (posted == nullptr) continue;
    races.push_back({posted->opcode, posted->stack, program_of_peer(queue_pair), race.other_qpn, race.other_process});
  }
  return races;
}

void Races::tell_race(const NotedAccess& one, const NotedAccess& other) {
  if (one.is_own) return;
  const RaceRow race = {one.stamp, qpn_of(other.name), program_of(other).process};
  const auto via = queue_pairs_.find(one.via);
  // The queue pair may have another peer by now.
  if (via == queue_pairs_.end() || name_of_peer(via->second) != one.name) return;
  if (host_of(one.name) == kThisHost) return told_.tell_race(one.via, race);
  if (via->second.races_to_tell.size() == kRaceRows) return;
  via->second.races_to_tell.push_back(race);
  via->second.assert_consistent();
}

const ToldRequest* Races::told(const Arrival& arrival) {
  assert_held(mutex_);
  if (arrival.peer == 0) return nullptr;
  QueuePair& queue_pair = queue_pairs_[arrival.qpn];
  ToldRequest& last = queue_pair.last_told;
  if (last.stamp != 0 && last.has(arrival.psn)) return &last;
  const std::optional<ToldRequest> found = host_of_peer(queue_pair) == kThisHost
                                               ? told_.request(queue_pair.connection, arrival.psn)
                                               : queue_pair.marks.request(arrival.psn);
  last = found.value_or(ToldRequest{});
  return found ? &last : nullptr;
}

void Races::received(const Arrival& arrival, uint64_t id) {
  const std::lock_guard lock(mutex_);
  QueuePair& queue_pair = queue_pairs_[arrival.qpn];
  Lesson lesson = {id, 0, 0, {}};
  if (const ToldRequest* request = told(arrival); request != nullptr) {
    lesson = {id, name_of_peer(queue_pair), request->stamp, request->known};
  } else {
    lesson.known.floor = now_ns();
  }
  queue_pair.received.push_back(lesson);
  if (queue_pair.received.size() > kMaxCompletions) queue_pair.received.pop_front();
  queue_pair.assert_consistent();
}

void Races::polled(uint32_t qpn, bool is_receive, uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto known = queue_pairs_.find(qpn);
  if (known == queue_pairs_.end()) return assume_all();
  std::deque<Lesson>& lessons = is_receive ? known->second.received : known->second.sent;
  const auto lesson = std::find_if(lessons.begin(), lessons.end(), [&](const Lesson& one) { return one.id == id; });
  if (lesson == lessons.end()) return assume_all();
  if (is_receive && known->second.polls == PollOrder::kAny) {
    // Another queue may have a completion with this id, too.
    const auto last = std::find_if(lessons.rbegin(), lessons.rend(), [&](const Lesson& one) { return one.id == id; });
    std::for_each(lessons.begin(), last.base(), [&](const Lesson& one) { learn(one); });
    lessons.erase(lesson);
    return;
  }
  std::for_each(lessons.begin(), lesson + 1, [&](const Lesson& one) { learn(one); });
  lessons.erase(lessons.begin(), lesson + 1);
}

bool Races::is_own(uint32_t qpn, uint32_t peer) const {
  const auto found = queue_pairs_.find(qpn);
  return found != queue_pairs_.end() && found->second.connection.peer == peer;
}

// The peer may find what this program has stored there, or what other peers have.
void Races::answer(const Arrival& arrival, const Range& range, Kind kind) {
  const std::lock_guard lock(mutex_);
  // The peer's own atomic has changed the word.
  const KnownRequests* changes = words_.find(range.begin);
  const bool is_sure = kind != Kind::kRead && changes != nullptr && !words_.has_forgotten();
  KnownRequests known = is_sure ? polled_ : seen_;
  if (is_sure) known.add(*changes);
  told_.tell_answer(arrival.qpn, arrival.psn, known);
}

std::optional<Races::Found> Races::access(const Arrival& arrival, const Range& range, const NotedAccess& access) {
  const std::lock_guard lock(mutex_);
  const bool was_written = history_.may_have_write(range.begin, range.end);
  std::optional<Found> found = add(arrival, range, access, 0);
  if (access.kind == Kind::kRead) return found;
  // The program may look there now.
  if (const ToldRequest* request = told(arrival); request != nullptr) {
    const QueuePairName peer = name_of_peer(queue_pairs_[arrival.qpn]);
    words_.change(range.begin, range.end, request->known, peer, request->stamp, was_written ? seen_ : KnownRequests{},
                  now_ns());
    // A request of its own is complete when the program polls the completion.
    if (host_of(peer) != kThisHost || !is_own(arrival.peer, arrival.qpn)) see(peer, request->stamp, request->known);
  } else {
    assume_all();
  }
  return found;
}

std::optional<Races::Found> Races::fill(const Arrival& arrival, const Range& range, uint64_t posted) {
  const std::lock_guard lock(mutex_);
  return add(arrival, range, {.kind = Kind::kWrite, .opcode = SendOpcode::kSend}, posted);
}

std::optional<Races::Found> Races::add(const Arrival& arrival, const Range& range, NotedAccess access,
                                       uint64_t posted) {
  const ToldRequest* request = told(arrival);
  if (request == nullptr) return std::nullopt;
  access.name = name_of_peer(queue_pairs_[arrival.qpn]);
  access.stamp = request->stamp;
  access.since = request->since;
  access.via = arrival.qpn;
  access.arrived = now_ns();
  const auto race = history_.add(range.begin, range.end, access, request->known, posted);
  if (!race) return std::nullopt;
  tell_race(race->earlier, access);
  tell_race(access, race->earlier);
  Found found = {*race, access, {program_of(race->earlier), program_of(access)}, {}};
  if (race->earlier.is_own) {
    const PostedAt* post = queue_pairs_[qpn_of(race->earlier.name)].find_post(race->earlier.stamp);
    if (post != nullptr) found.posted = post->stack;
  }
  return found;
}

void Races::forget(const Range& range) {
  const std::lock_guard lock(mutex_);
  history_.forget(range.begin, range.end);
}

}  // namespace dapple::soft::check
