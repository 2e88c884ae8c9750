// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The setting of a run: the faults of its world.
#pragma once

#include <cstdint>

#include "roce/host/ports.hpp"
#include "tests/sim/random.hpp"

namespace dapple::sim {

inline constexpr roce::Time kMicrosecond = 1000;
inline constexpr roce::Time kMillisecond = 1000 * kMicrosecond;

// Calm: nothing is lost and applications make no mistakes, so nothing may fail. Gentle: the network loses, delays,
// repeats and damages a few packets, and everything is retried often enough, so nothing may fail either. Wild: anything
// may happen.
enum class Mood : uint8_t { kCalm, kGentle, kWild };

// Its connections: of each type but XRC's, or mostly XRC's.
enum class WorldKind : uint8_t { kMixed, kExtended };

struct Plan {
  Mood mood{};
  uint32_t nodes = 2;
  bool ipv6 = false;

  // Chances per thousand.
  uint32_t loss = 0;
  uint32_t duplication = 0;
  uint32_t corruption = 0;
  uint32_t reordering = 0;
  roce::Time delay = kMicrosecond;
  roce::Time longest_reordering = 0;  // added to a reordered packet's delay

  // Faults and new requests end at this time.
  roce::Time chaos_ends = 0;
  uint32_t partitions = 0;
  uint32_t revocations = 0;
  uint32_t errors = 0;        // queue pairs that are moved to the error state
  uint32_t reconnects = 0;    // per thousand, after an error
  uint32_t bad_requests = 0;  // per thousand
  uint32_t drains = 0;        // to SQD and back
  uint32_t breakdowns = 0;    // times that a node's memory cannot be reached
  bool starves = false;       // receives are posted late or too short

  // Only with extended connections.
  bool is_extended = false;
  uint32_t late = 0;          // per thousand: accesses to memory whose owner does not answer now
  uint32_t wrong_queues = 0;  // per thousand: requests that name no queue of the peer
  uint32_t destructions = 0;  // shared receive queues that are destroyed

  Plan(Random& random, WorldKind kind);

 private:
  void extend(Random& random);
};

}  // namespace dapple::sim
