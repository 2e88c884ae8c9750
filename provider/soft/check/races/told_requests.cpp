// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/told_requests.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace dapple::soft::check {

void ToldRequests::assert_consistent() const {
  assert(!is_open() || (file_ >= 0 && others_ != nullptr));
  // A row with the number 0 is free.
  assert((known_ == 0) == (version_ == 0));
}

void ToldRequests::open(int file, uint32_t slot) {
  if (is_open()) return;
  auto* pages = static_cast<RacePages*>(map_races(file, slot));
  if (pages == nullptr) return;
  others_ = std::make_unique<const RacePages*[]>(kMaxSlots);
  others_[slot] = pages;
  file_ = file;
  own_ = pages;
  // The slot's last owner may have left something.
  for (Lane& lane : pages->lanes) lane.row.write({});
  pages->process.store(getpid());
  assert_consistent();
}

Lane* ToldRequests::lane_of(uint32_t qpn) const {
  if (!is_open()) return nullptr;
  Lane& lane = own_->lanes[qpn % kLanes];
  LaneRow row;
  return lane.row.read(row) && row.qpn == qpn ? &lane : nullptr;
}

void ToldRequests::meet(uint32_t peer) {
  const uint32_t slot = slot_of(peer);
  if (!is_open() || slot >= kMaxSlots || others_[slot] != nullptr) return;
  others_[slot] = static_cast<const RacePages*>(map_races(file_, slot));
}

void ToldRequests::connect(const Connection& connection) {
  if (!is_open()) return;
  Lane& lane = own_->lanes[connection.qpn % kLanes];
  LaneRow row;
  if (lane.row.read(row) && row.qpn != connection.qpn) return;
  lane.row.write({});
  for (SharedRow<RequestRow>& request : lane.request_rows) request.write({});
  for (SharedRow<AnswerRow>& answer : lane.answer_rows) answer.write({});
  lane.requests.store(0);
  lane.answers.store(0);
  lane.races.store(0);
  lane.row.write({connection.qpn, connection.peer, connection.addresses});
}

void ToldRequests::locate(const Connection& connection) {
  Lane* lane = lane_of(connection.qpn);
  if (lane != nullptr) lane->row.write({connection.qpn, connection.peer, connection.addresses});
}

void ToldRequests::disconnect(uint32_t qpn) {
  if (Lane* lane = lane_of(qpn); lane != nullptr) lane->row.write({});
}

void ToldRequests::tell(uint32_t qpn, uint64_t stamp, uint32_t first_psn, uint32_t packets, const KnownRequests& known,
                        uint64_t version) {
  assert(stamp != 0 && packets != 0 && version != 0);
  Lane* lane = lane_of(qpn);
  if (lane == nullptr) return;
  if (known_ == 0 || version != version_) {
    version_ = version;
    known_++;
    own_->of_requests[known_ % kKnownRows].write({known_, known});
  }
  const uint32_t count = lane->requests.load(std::memory_order_relaxed);
  lane->request_rows[count % kRequestRows].write({stamp, known_, first_psn, packets});
  lane->requests.store(count + 1, std::memory_order_release);
  assert_consistent();
}

void ToldRequests::tell_answer(uint32_t qpn, uint32_t psn, const KnownRequests& known) {
  Lane* lane = lane_of(qpn);
  if (lane == nullptr) return;
  const uint32_t count = lane->answers.load(std::memory_order_relaxed);
  AnswerRow last;
  // A later packet of the answer.
  const bool goes_on = count != 0 && lane->answer_rows[(count - 1) % kAnswerRows].read(last) && last.psn == psn;
  if (!goes_on) last = {++answers_, psn, 0};
  assert(last.is_used() && last.known <= answers_);
  own_->of_answers[last.known % kKnownRows].write({last.known, known});
  if (goes_on) return;
  lane->answer_rows[count % kAnswerRows].write(last);
  lane->answers.store(count + 1, std::memory_order_release);
}

void ToldRequests::tell_race(uint32_t qpn, const RaceRow& race) {
  Lane* lane = lane_of(qpn);
  if (lane == nullptr) return;
  const uint32_t count = lane->races.load(std::memory_order_relaxed);
  lane->race_rows[count % kRaceRows].write(race);
  lane->races.store(count + 1, std::memory_order_release);
}

std::vector<RaceRow> ToldRequests::races(const Connection& connection, uint32_t& seen) const {
  std::vector<RaceRow> races;
  const Lane* lane = peers_lane(connection);
  if (lane == nullptr) return races;
  const uint32_t count = lane->races.load(std::memory_order_acquire);
  for (uint32_t i = std::min(count - seen, kRaceRows); i > 0; i--) {
    RaceRow row;
    if (lane->race_rows[(count - i) % kRaceRows].read(row)) races.push_back(row);
  }
  seen = count;
  return races;
}

const RacePages* ToldRequests::pages_of(uint32_t qpn) const {
  const uint32_t slot = slot_of(qpn);
  return is_open() && slot < kMaxSlots ? others_[slot] : nullptr;
}

const Lane* ToldRequests::peers_lane(const Connection& connection) const {
  const RacePages* pages = pages_of(connection.peer);
  if (pages == nullptr) return nullptr;
  const Lane& lane = pages->lanes[connection.peer % kLanes];
  LaneRow row;
  if (!lane.row.read(row) || row.qpn != connection.peer || row.peer != connection.qpn) return nullptr;
  std::swap(row.addresses.source, row.addresses.destination);
  return same(row.addresses, connection.addresses) ? &lane : nullptr;
}

std::optional<KnownRequests> ToldRequests::find(const SharedRow<KnownRow> (&rows)[kKnownRows], uint64_t number) {
  KnownRow row;
  if (!rows[number % kKnownRows].read(row) || row.number != number || !row.known.is_sound()) return std::nullopt;
  return row.known;
}

std::optional<ToldRequest> ToldRequests::find_request(const RacePages& pages, const Lane& lane, uint32_t psn) {
  const uint32_t count = lane.requests.load(std::memory_order_acquire);
  for (uint32_t i = 1; i <= std::min(count, kRequestRows); i++) {
    RequestRow row;
    if (!lane.request_rows[(count - i) % kRequestRows].read(row)) continue;
    ToldRequest request = {row.stamp, row.first_psn, row.packets, {}, row.stamp};
    if (!request.has(psn)) continue;
    const std::optional<KnownRequests> known = find(pages.of_requests, row.known);
    if (!known) return std::nullopt;
    request.known = *known;
    return request;
  }
  return std::nullopt;
}

std::optional<KnownRequests> ToldRequests::find_answer(const RacePages& pages, const Lane& lane,
                                                       const ToldRequest& request) {
  const uint32_t count = lane.answers.load(std::memory_order_acquire);
  for (uint32_t i = 1; i <= std::min(count, kAnswerRows); i++) {
    AnswerRow row;
    if (!lane.answer_rows[(count - i) % kAnswerRows].read(row) || !request.has(row.psn)) continue;
    return find(pages.of_answers, row.known);
  }
  return std::nullopt;
}

std::optional<ToldRequest> ToldRequests::request(const Connection& connection, uint32_t psn) const {
  const Lane* lane = peers_lane(connection);
  return lane == nullptr ? std::nullopt : find_request(*pages_of(connection.peer), *lane, psn);
}

std::optional<ToldRequest> ToldRequests::own_request(uint32_t qpn, uint32_t psn) const {
  const Lane* lane = lane_of(qpn);
  return lane == nullptr ? std::nullopt : find_request(*own_, *lane, psn);
}

std::optional<KnownRequests> ToldRequests::answer(const Connection& connection, uint32_t first_psn,
                                                  uint32_t packets) const {
  const Lane* lane = peers_lane(connection);
  if (lane == nullptr) return std::nullopt;
  return find_answer(*pages_of(connection.peer), *lane, {0, first_psn, packets, {}});
}

std::optional<KnownRequests> ToldRequests::own_answer(uint32_t qpn, uint32_t psn) const {
  const Lane* lane = lane_of(qpn);
  return lane == nullptr ? std::nullopt : find_answer(*own_, *lane, {0, psn, 1, {}});
}

int ToldRequests::process_of(uint32_t qpn) const {
  const RacePages* pages = pages_of(qpn);
  return pages == nullptr ? 0 : pages->process.load();
}

}  // namespace dapple::soft::check
