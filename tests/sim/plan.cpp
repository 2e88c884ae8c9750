// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/plan.hpp"

namespace dapple::sim {

Plan::Plan(Random& random, WorldKind kind) : is_extended(kind == WorldKind::kExtended) {
  constexpr Mood kMoods[] = {Mood::kCalm, Mood::kGentle, Mood::kGentle, Mood::kWild, Mood::kWild, Mood::kWild};
  mood = random.one_of(kMoods);
  nodes = static_cast<uint32_t>(random.between(2, 4));
  ipv6 = random.in_thousand(500);
  delay = random.between(1, 50) * kMicrosecond;
  chaos_ends = random.between(1, 20) * kMillisecond;
  drains = random.in_thousand(300) ? static_cast<uint32_t>(random.between(1, 3)) : 0;
  if (mood == Mood::kCalm) return;
  if (is_extended) extend(random);

  // In some runs each kind of fault is alone, in others several come together.
  const uint64_t worst = mood == Mood::kGentle ? 15 : random.in_thousand(300) ? 300 : 60;
  const auto perhaps = [&random](uint64_t most) {
    return random.in_thousand(600) ? static_cast<uint32_t>(random.between(1, most)) : 0;
  };
  loss = perhaps(worst);
  duplication = perhaps(worst);
  corruption = perhaps(worst / 2 + 1);
  reordering = perhaps(worst);
  longest_reordering = random.between(1, mood == Mood::kGentle ? 100 : 3000) * kMicrosecond;
  starves = random.in_thousand(300);
  if (mood == Mood::kGentle) return;

  const auto some = [&random](uint64_t most) {
    return random.in_thousand(400) ? static_cast<uint32_t>(random.between(1, most)) : 0;
  };
  partitions = some(3);
  revocations = some(4);
  errors = some(3);
  reconnects = random.in_thousand(700) ? 800 : 0;
  bad_requests = some(60);
  breakdowns = random.in_thousand(100) ? 1 : 0;
}

void Plan::extend(Random& random) {
  late = random.in_thousand(300) ? static_cast<uint32_t>(random.between(1, mood == Mood::kGentle ? 10 : 50)) : 0;
  if (mood == Mood::kGentle) return;
  wrong_queues = random.in_thousand(300) ? static_cast<uint32_t>(random.between(1, 40)) : 0;
  destructions = random.in_thousand(600) ? static_cast<uint32_t>(random.between(1, 3)) : 0;
}

}  // namespace dapple::sim
