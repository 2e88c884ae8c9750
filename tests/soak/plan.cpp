// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/soak/random.hpp"

namespace dapple::soak {
namespace {

constexpr uint32_t kMaxKills = 3;
// dappled is killed in the first half of each such number of rounds. In the other half it lives long enough to be
// measured.
constexpr uint64_t kSeason = 100;

}  // namespace

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {"verbs", "udapl", "rpma"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name_of(Group group) {
  static constexpr const char* kNames[] = {"killed", "faults", "steady", "limited"};
  return kNames[static_cast<size_t>(group)];
}

std::vector<PairPlan> plan_pairs(uint64_t seed, uint32_t count, const std::string& only) {
  std::vector<Kind> kinds;
  for (const Kind kind : {Kind::kVerbs, Kind::kUdapl, Kind::kRpma}) {
    if (only.empty() || only == name_of(kind)) kinds.push_back(kind);
  }
  Random random(seed);
  std::vector<PairPlan> pairs;
  for (uint32_t i = 0; i < count; i++) {
    PairPlan pair;
    pair.kind = kinds[i % kinds.size()];
    pair.group = static_cast<Group>(i / kinds.size() % 4);
    pair.seed = random.next();
    if (pair.group == Group::kFaults) {
      pair.faults =
          fmt::format("drop={:.4f},dup={:.4f},reorder={:.4f},corrupt={:.4f},seed={}", random.below(200) / 1e4,
                      random.below(200) / 1e4, random.below(200) / 1e4, random.below(50) / 1e4, random.below(1 << 30));
    }
    pairs.push_back(pair);
  }
  return pairs;
}

Round plan_round(uint64_t seed, uint64_t number, const std::vector<PairPlan>& pairs) {
  Random random(mix(seed) + number);
  Round round;
  round.length_ms = 2000 + random.below(3000);
  std::vector<uint32_t> mortal;
  for (uint32_t i = 0; i < pairs.size(); i++) {
    if (pairs[i].group == Group::kKilled || pairs[i].group == Group::kFaults) mortal.push_back(i);
  }
  for (uint32_t i = random.below(kMaxKills + 1); i > 0; i--) {
    Kill kill;
    kill.after_ms = random.below(round.length_ms);
    kill.dappled = random.one_in(5);
    if (kill.dappled ? number % kSeason >= kSeason / 2 : mortal.empty()) continue;
    if (!kill.dappled) {
      kill.pair = mortal[random.below(mortal.size())];
      kill.worker = random.below(2);
    }
    round.kills.push_back(kill);
  }
  std::sort(round.kills.begin(), round.kills.end(),
            [](const Kill& one, const Kill& other) { return one.after_ms < other.after_ms; });
  return round;
}

std::string text_of(const Round& round) {
  std::string text = fmt::format("{} ms", round.length_ms);
  for (const Kill& kill : round.kills) {
    if (kill.dappled) {
      text += fmt::format(", dappled after {}", kill.after_ms);
    } else {
      text += fmt::format(", {} {} after {}", kill.worker == 0 ? "server" : "client", kill.pair, kill.after_ms);
    }
  }
  return text;
}

}  // namespace dapple::soak
