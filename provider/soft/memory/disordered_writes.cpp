// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/disordered_writes.hpp"

#include <time.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/memory/order_watch.hpp"

namespace dapple::soft {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
// Long enough for a program that polls on another CPU, or that waits for this one.
constexpr timespec kPause = {0, 50'000};

void pause_between_pieces() {
  const CancelGuard whole;
  nanosleep(&kPause, nullptr);
}

}  // namespace

DisorderedWrites::Pieces DisorderedWrites::cut(const roce::RemoteRange& range) {
  Pieces pieces;
  // Places between two words.
  const uint64_t to_first = kWord - range.address % kWord;
  const uint64_t places = range.length > to_first ? (range.length - to_first - 1) / kWord + 1 : 0;
  if (places == 0) return pieces;
  // The last word is a piece, so that a program that polls it is found.
  size_t* const cuts = pieces.begin + 1;
  size_t count = std::min<size_t>(places, kMaxPieces - 1);
  for (size_t i = 0; i < count; i++) {
    const uint64_t place = i == 0 ? places - 1 : random_.below(places);
    cuts[i] = to_first + place * kWord;
  }
  std::sort(cuts, cuts + count);
  count = static_cast<size_t>(std::unique(cuts, cuts + count) - cuts);
  pieces.begin[0] = 0;
  pieces.count = count + 1;
  pieces.begin[pieces.count] = range.length;

  size_t* const order = pieces.order;
  std::iota(order, order + pieces.count, size_t{0});
  for (size_t i = pieces.count - 1; i > 0; i--) std::swap(order[i], order[random_.below(i + 1)]);
  if (order[count] == count) std::swap(order[count], order[random_.below(count)]);
  assert(2 <= pieces.count && pieces.count <= kMaxPieces && order[count] != count);
  assert(cuts[0] > 0 && cuts[count - 1] < range.length);
  return pieces;
}

roce::Fault DisorderedWrites::write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) {
  const Pieces pieces = cut(range);
  if (pieces.count == 0) return below_.write(who, range, from);
  // A refused Write stores nothing, so the whole range is checked first.
  roce::Fault fault = below_.check_remote(who, range, roce::kRemoteWrite);
  for (size_t i = 0; i < pieces.count && fault == roce::Fault::kNone; i++) {
    if (i == 0) tell_order_watch();
    if (i > 0) pause_between_pieces();
    const size_t piece = pieces.order[i], begin = pieces.begin[piece];
    fault = below_.write(who, {range.rkey, range.address + begin, pieces.begin[piece + 1] - begin}, from + begin);
  }
  return fault;
}

}  // namespace dapple::soft
