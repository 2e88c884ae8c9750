// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The order of the software device's locks. lock_ranks.def has the list and the rule.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

enum class LockRank : uint8_t {
#define LOCK(rank, kind, member, guards) rank,
#include "provider/common/lock_ranks.def"
};

enum class LockKind : uint8_t { kSingle, kPrograms, kFamily };

struct LockInfo {
  LockKind kind;
  const char* member;
};
inline constexpr LockInfo kLocks[] = {
#define LOCK(rank, kind, member, guards) {LockKind::kind, member},
#include "provider/common/lock_ranks.def"
};
inline constexpr size_t kLockRanks = sizeof kLocks / sizeof kLocks[0];

constexpr const LockInfo& info_of(LockRank rank) {
  return kLocks[static_cast<size_t>(rank)];
}

// Sets of ranks have a bit for each. A word is too short for the list.
__extension__ using RankSet = unsigned __int128;
constexpr RankSet bit_of(LockRank rank) {
  return RankSet{1} << static_cast<unsigned>(rank);
}
static_assert(kLockRanks <= sizeof(RankSet) * 8);

// The last rank of a set that is not empty.
constexpr LockRank last_of(RankSet set) {
  const auto upper = static_cast<uint64_t>(set >> 64);
  const auto lower = static_cast<uint64_t>(set);
  return static_cast<LockRank>(upper != 0 ? 127 - __builtin_clzll(upper) : 63 - __builtin_clzll(lower));
}

// The ranks of which a thread may hold no lock when it takes one of this rank.
constexpr RankSet forbidden_before(LockRank rank) {
  RankSet forbidden = ~(bit_of(rank) - 1);
  for (size_t i = 0; i < kLockRanks; i++) {
    const auto other = static_cast<LockRank>(i);
    if (info_of(rank).kind == LockKind::kPrograms && info_of(other).kind == LockKind::kPrograms)
      forbidden &= ~bit_of(other);
  }
  return forbidden;
}

}  // namespace dapple::soft
