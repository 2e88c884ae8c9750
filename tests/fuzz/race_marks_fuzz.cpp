// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Marks of dapple-run --check=races as a network brings them. The input is a list. Each entry has the mark's size (two
// bytes), a PSN (three bytes) and the mark. The target looks for the request with this PSN afterwards. It aborts if a
// mark changes when it is written and read again, if more is kept than the limits allow, or if a name of another host
// becomes one of this host without this host's number.
#include <algorithm>
#include <cstdint>

#include "provider/protocol/mark_question.hpp"
#include "provider/soft/check/races/peer_marks.hpp"
#include "roce/packet/psn.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using dapple::fuzz::require;
using namespace dapple::soft;
using namespace dapple::soft::check;

constexpr uint64_t kOwn = 0x1234;

void check_read(std::span<const std::byte> bytes, const Mark& mark) {
  require(mark.host != kThisHost && mark.host <= kHostMask && mark.stamp != 0 && mark.psn <= 0xFFFFFF);
  require(mark.known.is_sound() && bytes.size() <= kMaxMarkBytes);
  MarkBytes again;
  require(write_mark(mark, again) == bytes.size());
  // Two bytes mean nothing.
  require(std::equal(bytes.begin(), bytes.begin() + 6, again.begin()));
  require(std::equal(bytes.begin() + 8, bytes.end(), again.begin() + 8));
}

void take(std::span<const std::byte> bytes, uint32_t psn, uint64_t now, PeerMarks& marks) {
  std::optional<Mark> mark = read_mark(bytes);
  if (mark) {
    check_read(bytes, *mark);
    const KnownRequests before = mark->known;
    take_over(*mark, kOwn, now, 0);
    require(mark->known.count == before.count && mark->known.floor <= now);
    for (uint32_t i = 0; i < before.count; i++) {
      const bool is_own = host_of(before.entries[i].name) == kOwn;
      require(mark->known.entries[i].is_of_this_host() == is_own);
    }
    const uint64_t last = marks.last_stamp();
    marks.add(*mark, now);
    require(marks.last_stamp() >= last);
  }
  if (const std::optional<ToldRequest> request = marks.request(psn)) {
    require(request->has(psn) && request->since <= now && request->known.is_sound());
    marks.note_result(request->stamp, psn, dapple::roce::psn_add(psn, 1), psn);
    if (psn % 2 == 0) (void)marks.take_answer(request->stamp, request->packets);
  }
  if (psn % 16 == 0) require(marks.take_races().size() <= kRaceRows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto question = read_mark_question(bytes);
  require(!question || !read_mark_answer(bytes));
  PeerMarks marks;
  uint64_t now = 1;
  while (bytes.size() >= 5) {
    const auto at = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
    const size_t length = std::min<size_t>(at(0) << 8 | at(1), bytes.size() - 5);
    const uint32_t psn = at(2) << 16 | at(3) << 8 | at(4);
    take(bytes.subspan(5, length), psn, now, marks);
    bytes = bytes.subspan(5 + length);
    now += psn;
  }
  return 0;
}
