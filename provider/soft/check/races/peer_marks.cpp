// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/peer_marks.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "roce/packet/psn.hpp"

namespace dapple::soft::check {

using roce::psn_distance;

void PeerMarks::assert_consistent() const {
  assert(requests_.size() <= kMaxRequests && answers_.size() <= kMaxAnswers);
  assert(results_.size() <= kMaxResults && races_.size() <= kRaceRows);
  assert(requests_.empty() || requests_.front().place <= requests_.back().place);
  assert(requests_.empty() || requests_.back().stamp <= last_stamp_);
}

// A queue pair sends its requests in the order of their stamps. A mark that has come before, or late, tells nothing.
void PeerMarks::add(const Mark& mark, uint64_t now) {
  if (host_ != kThisHost && mark.host != host_) return;
  host_ = mark.host;
  process_ = mark.process;
  switch (mark.kind) {
    case Mark::Kind::kRequest:
      if (mark.stamp <= last_stamp_) return;
      return add_request(mark, now);
    case Mark::Kind::kAnswer:
      answers_.push_back({mark.stamp, mark.psn, mark.extent, mark.known});
      if (answers_.size() > kMaxAnswers) answers_.pop_front();
      return assert_consistent();
    case Mark::Kind::kRace:
      races_.push_back({mark.stamp, mark.extent, mark.other_process});
      if (races_.size() > kRaceRows) races_.pop_front();
      return assert_consistent();
  }
}

void PeerMarks::add_request(const Mark& mark, uint64_t now) {
  MarkedRequest request;
  static_cast<ToldRequest&>(request) = {mark.stamp, mark.psn, mark.extent, mark.known, now};
  request.place = mark.psn;
  if (!requests_.empty()) {
    const MarkedRequest& last = requests_.back();
    request.place = last.place + ((mark.psn - last.first_psn) & roce::kPsnMask);
  }
  last_stamp_ = mark.stamp;
  requests_.push_back(request);
  while (requests_.size() > kMaxRequests || request.place - requests_.front().place > kMaxPsns) requests_.pop_front();
  assert(!requests_.empty());
  assert_consistent();
}

std::optional<ToldRequest> PeerMarks::request(uint32_t psn) {
  const auto found =
      std::find_if(requests_.rbegin(), requests_.rend(), [=](const ToldRequest& request) { return request.has(psn); });
  if (found != requests_.rend()) return *found;
  std::erase_if(requests_, [=](const ToldRequest& request) { return psn_distance(request.first_psn, psn) < 0; });
  return std::nullopt;
}

// The peer may read the bytes again for a packet that was lost, and then knows more. The check distinguishes the two
// packets, unless their bytes are the same.
void PeerMarks::note_result(uint64_t stamp, uint32_t first_psn, uint32_t psn, uint32_t check) {
  const int32_t place = psn_distance(psn, first_psn);
  assert(place >= 0);
  auto result = results_.find(stamp);
  if (result == results_.end()) {
    if (results_.size() == kMaxResults) results_.erase(results_.begin());
    result = results_.emplace(stamp, Result{}).first;
  }
  if (static_cast<uint32_t>(place) == result->second.packets) result->second.packets++;
  const auto answer = std::find_if(answers_.rbegin(), answers_.rend(), [=](const Answer& one) {
    return one.stamp == stamp && one.psn == psn && one.check == check;
  });
  if (answer == answers_.rend()) {
    result->second.is_marked = false;
  } else {
    result->second.known.add(answer->known);
  }
  assert_consistent();
}

std::optional<KnownRequests> PeerMarks::take_answer(uint64_t stamp, uint32_t packets) {
  std::optional<KnownRequests> known;
  const auto result = results_.find(stamp);
  if (result != results_.end() && result->second.is_marked && result->second.packets == packets)
    known = result->second.known;
  // Requests complete in order.
  results_.erase(results_.begin(), results_.upper_bound(stamp));
  assert_consistent();
  return known;
}

std::vector<RaceRow> PeerMarks::take_races() {
  std::vector<RaceRow> races(races_.begin(), races_.end());
  races_.clear();
  return races;
}

}  // namespace dapple::soft::check
