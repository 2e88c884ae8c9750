// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/mark.hpp"

#include <algorithm>
#include <cassert>

#include "provider/protocol/mark_question.hpp"
#include "roce/packet/big_endian.hpp"

namespace dapple::soft::check {
namespace {

using roce::load_be32;
using roce::load_be64;
using roce::store_be32;
using roce::store_be64;

// The places of the fields.
constexpr size_t kVersionAt = 0, kKindAt = 4, kCountAt = 5, kProcessAt = 8, kOtherProcessAt = 12, kHostAt = 16,
                 kSentAt = 24, kStampAt = 32, kPsnAt = 40, kExtentAt = 44, kFloorAt = 48;
static_assert(kFloorAt + 8 == kMarkHeaderSize);
// A request has fewer packets than half of the circle of PSNs.
constexpr uint32_t kMaxPsns = 1 << 23;
constexpr uint32_t kMaskPsn = (1 << 24) - 1;
// Two clocks differ by less than this part of a time: NTP sets a clock by 1/2000 at most.
constexpr uint64_t kDrift = 512;

}  // namespace

bool is_possible(const Mark& mark) {
  if (mark.host == kThisHost || mark.host > kHostMask || mark.psn > kMaskPsn) return false;
  if (mark.stamp == 0 || !mark.known.is_sound()) return false;
  switch (mark.kind) {
    case Mark::Kind::kRequest:
      return mark.extent > 0 && mark.extent <= kMaxPsns;
    case Mark::Kind::kAnswer:
    case Mark::Kind::kRace:
      return true;
  }
  return false;
}

size_t write_mark(const Mark& mark, MarkBytes& bytes) {
  assert(is_possible(mark));
  std::byte* const to = bytes.data();
  std::fill_n(to, kMarkHeaderSize, std::byte{0});
  store_be32(to + kVersionAt, kMarkVersion);
  to[kKindAt] = static_cast<std::byte>(mark.kind);
  to[kCountAt] = static_cast<std::byte>(mark.known.count);
  store_be32(to + kProcessAt, static_cast<uint32_t>(mark.process));
  store_be32(to + kOtherProcessAt, static_cast<uint32_t>(mark.other_process));
  store_be64(to + kHostAt, mark.host);
  store_be64(to + kSentAt, mark.sent);
  store_be64(to + kStampAt, mark.stamp);
  store_be32(to + kPsnAt, mark.psn);
  store_be32(to + kExtentAt, mark.extent);
  store_be64(to + kFloorAt, mark.known.floor);
  std::byte* entry = to + kMarkHeaderSize;
  for (uint32_t i = 0; i < mark.known.count; i++, entry += kMarkEntrySize) {
    const KnownRequests::Entry& known = mark.known.entries[i];
    store_be64(entry, known.is_of_this_host() ? name_of(mark.host, qpn_of(known.name)) : known.name);
    store_be64(entry + 8, known.stamp);
  }
  return static_cast<size_t>(entry - to);
}

std::optional<Mark> read_mark(std::span<const std::byte> bytes) {
  if (bytes.size() < kMarkHeaderSize || load_be32(bytes.data() + kVersionAt) != kMarkVersion) return std::nullopt;
  const std::byte* const from = bytes.data();
  Mark mark;
  mark.kind = static_cast<Mark::Kind>(from[kKindAt]);
  mark.known.count = static_cast<uint32_t>(from[kCountAt]);
  if (!mark.known.is_sound() || bytes.size() != kMarkHeaderSize + mark.known.count * kMarkEntrySize)
    return std::nullopt;
  mark.process = static_cast<int32_t>(load_be32(from + kProcessAt));
  mark.other_process = static_cast<int32_t>(load_be32(from + kOtherProcessAt));
  mark.host = load_be64(from + kHostAt);
  mark.sent = load_be64(from + kSentAt);
  mark.stamp = load_be64(from + kStampAt);
  mark.psn = load_be32(from + kPsnAt);
  mark.extent = load_be32(from + kExtentAt);
  mark.known.floor = load_be64(from + kFloorAt);
  const std::byte* entry = from + kMarkHeaderSize;
  for (uint32_t i = 0; i < mark.known.count; i++, entry += kMarkEntrySize) {
    mark.known.entries[i] = {.name = load_be64(entry), .stamp = load_be64(entry + 8)};
    if (mark.known.entries[i].is_of_this_host()) return std::nullopt;
  }
  return is_possible(mark) ? std::optional(mark) : std::nullopt;
}

// The way of the mark took some time, so its floor was earlier here than this says.
void take_over(Mark& mark, uint64_t own, uint64_t now, uint64_t slept) {
  KnownRequests& known = mark.known;
  for (uint32_t i = 0; i < known.count; i++) {
    auto& [name, stamp, learned] = known.entries[i];
    if (host_of(name) == own) name = name_of(kThisHost, qpn_of(name));
    learned = now;
  }
  if (known.floor == 0) return;
  const uint64_t sent_age = mark.sent > known.floor ? mark.sent - known.floor : 0;
  const uint64_t age = sent_age - sent_age / kDrift;
  known.floor = now - std::min(now, age - std::min(age, slept));
}

}  // namespace dapple::soft::check
