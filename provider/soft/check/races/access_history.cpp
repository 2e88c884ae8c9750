// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/access_history.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace dapple::soft::check {
namespace {

using Kind = NotedAccess::Kind;

constexpr uintptr_t kWord = 8;

// A message in the memory of a receive: the program has posted that memory itself.
bool is_message(const NotedAccess& access) {
  return !access.is_own && access.opcode == roce::SendOpcode::kSend;
}

// Programs look at a word by Reads while others change it by atomics.
bool conflict(const NotedAccess& one, const NotedAccess& other) {
  if (one.name == other.name) return false;
  // Two requests of the program itself have the same bytes: another finding.
  if ((one.is_own || is_message(one)) && (other.is_own || is_message(other))) return false;
  if (one.kind == Kind::kWrite || other.kind == Kind::kWrite) return true;
  return one.kind != other.kind && !(one.is_word && other.is_word);
}

// Each request that races with the earlier access races with this one, too.
bool stands_for(const NotedAccess& access, const NotedAccess& earlier) {
  return access.kind == Kind::kWrite || access.kind == earlier.kind;
}

bool same(const NotedAccess& one, const NotedAccess& other) {
  return one.name == other.name && one.stamp == other.stamp && one.kind == other.kind;
}

}  // namespace

void AccessHistory::assert_consistent() const {
  assert(pieces_.size() <= kMaxPieces);
  assert(pieces_.empty() || pieces_.begin()->first < pieces_.begin()->second.end);
}

AccessHistory::Pieces::iterator AccessHistory::split(uintptr_t at) {
  auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin() || (next != pieces_.end() && next->first == at)) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  assert(before->first < at);
  Piece rest = before->second;
  before->second.end = at;
  return pieces_.emplace_hint(next, at, std::move(rest));
}

std::optional<AccessHistory::Race> AccessHistory::add(uintptr_t begin, uintptr_t end, NotedAccess access,
                                                      const KnownRequests& known, uint64_t posted) {
  if (begin >= end) return std::nullopt;
  std::optional<Race> race;
  if (access.since == 0) access.since = access.stamp;
  access.is_word = begin / kWord == (end - 1) / kWord;
  // A later packet of the request.
  if (const auto next = pieces_.lower_bound(begin); next != pieces_.begin()) {
    auto& [first, before] = *std::prev(next);
    const bool is_alone = before.accesses.size() == 1 && same(before.accesses[0], access);
    if (is_alone && before.end == begin && (next == pieces_.end() || next->first >= end)) {
      before.end = end;
      return std::nullopt;
    }
  }
  split(end);
  auto place = split(begin);
  for (uintptr_t at = begin; at < end;) {
    if (place == pieces_.end() || place->first > at) {
      const uintptr_t until = place == pieces_.end() ? end : std::min(end, place->first);
      place = pieces_.emplace_hint(place, at, Piece{until, {}});
    }
    Piece& piece = place->second;
    assert(place->first == at && at < piece.end && piece.end <= end);
    std::erase_if(piece.accesses, [&](const NotedAccess& earlier) {
      const bool is_before = earlier.name == access.name || known.has(earlier.name, earlier.stamp, earlier.since) ||
                             earlier.arrived < posted;
      if (!is_before && !race && !access.is_own && conflict(earlier, access)) race = {earlier, at, piece.end};
      return is_before && stands_for(access, earlier);
    });
    if (piece.accesses.size() == kMaxAccesses) {
      piece.accesses.erase(piece.accesses.begin());
      has_forgotten_ = true;
    }
    piece.accesses.push_back(access);
    assert(piece.accesses.size() <= kMaxAccesses);
    at = piece.end;
    ++place;
  }
  limit();
  return race;
}

// In the order of the addresses, so that each piece has its turn.
void AccessHistory::limit() {
  while (pieces_.size() > kMaxPieces) {
    auto next = pieces_.upper_bound(last_forgotten_);
    if (next == pieces_.end()) next = pieces_.begin();
    last_forgotten_ = next->first;
    has_forgotten_ = true;
    pieces_.erase(next);
  }
  assert_consistent();
}

void AccessHistory::forget(uintptr_t begin, uintptr_t end) {
  if (begin >= end) return;
  const auto last = split(end);
  pieces_.erase(split(begin), last);
  assert(!may_have_write(begin, end) || has_forgotten_);
}

bool AccessHistory::may_have_write(uintptr_t begin, uintptr_t end) const {
  if (has_forgotten_) return true;
  auto place = pieces_.upper_bound(begin);
  if (place != pieces_.begin()) --place;
  for (; place != pieces_.end() && place->first < end; ++place) {
    if (place->second.end <= begin) continue;
    const auto& accesses = place->second.accesses;
    if (std::any_of(accesses.begin(), accesses.end(), [](const NotedAccess& one) { return one.kind == Kind::kWrite; }))
      return true;
  }
  return false;
}

}  // namespace dapple::soft::check
