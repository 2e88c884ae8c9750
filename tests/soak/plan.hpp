// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The decisions of the seed: the pairs, and the kills with their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dapple::soak {

enum class Kind { kVerbs, kUdapl, kRpma };
enum class Group {
  kKilled,   // by shared memory, and killed
  kFaults,   // over UDP with loss, duplicates, damage and a changed order, and killed
  kSteady,   // lives as long as the test, so that its size can be compared
  kLimited,  // the same, and has too little memory now and then
};

const char* name_of(Kind kind);
const char* name_of(Group group);

struct PairPlan {
  Kind kind = Kind::kVerbs;
  Group group = Group::kKilled;
  uint64_t seed = 0;
  std::string faults;  // DAPPLE_FAULTS
};

// only: the name of a kind, or empty for all in turn.
std::vector<PairPlan> plan_pairs(uint64_t seed, uint32_t count, const std::string& only);

struct Kill {
  uint32_t after_ms = 0;  // since the round began
  bool dappled = false;
  uint32_t pair = 0;
  uint32_t worker = 0;
};

struct Round {
  uint32_t length_ms = 0;
  std::vector<Kill> kills;  // in the order of time
};

Round plan_round(uint64_t seed, uint64_t number, const std::vector<PairPlan>& pairs);
std::string text_of(const Round& round);

}  // namespace dapple::soak
