// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The devices on which no IA may be opened.
#include "udapl/core/ia/coherence_check.hpp"

#include <cstring>
#include <initializer_list>

#include "tests/unit/udapl-registry/checks.hpp"

using dapple::udapl::obstacle_of;

namespace {

dappledv_device_attr device(dappledv_coherence coherence, dappledv_certainty certainty, bool supported = true) {
  dappledv_device_attr attr{};
  attr.coherence = coherence;
  attr.certainty = certainty;
  attr.sync_supported = supported;
  return attr;
}

constexpr auto kEverySource = {DAPPLEDV_CERTAINTY_OVERRIDE, DAPPLEDV_CERTAINTY_KERNEL, DAPPLEDV_CERTAINTY_FIRMWARE,
                               DAPPLEDV_CERTAINTY_ARCHITECTURE, DAPPLEDV_CERTAINTY_ASSUMED};

void obstacle__coherent_devices_are_opened() {
  for (const auto certainty : kEverySource) CHECK(!obstacle_of(device(DAPPLEDV_COHERENCE_COHERENT, certainty)));
}

void obstacle__known_non_coherent_devices_are_refused_in_one_line() {
  for (const auto coherence : {DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_NONCOHERENT_IO}) {
    for (const auto certainty : kEverySource) {
      const char* obstacle = obstacle_of(device(coherence, certainty));
      CHECK_EQUAL(obstacle != nullptr, certainty != DAPPLEDV_CERTAINTY_OVERRIDE);
      if (!obstacle) continue;
      CHECK(std::strstr(obstacle, "queues"));
      CHECK(std::strstr(obstacle, "coherence=cpu"));
      CHECK(!std::strchr(obstacle, '\n'));
    }
  }
}

void obstacle__bounced_devices_are_refused_in_one_line() {
  for (const auto certainty : kEverySource) {
    const char* obstacle = obstacle_of(device(DAPPLEDV_COHERENCE_BOUNCED, certainty, false));
    CHECK(obstacle && std::strstr(obstacle, "bounced") && std::strstr(obstacle, "ibv_alloc_buf()"));
    CHECK(!std::strchr(obstacle, '\n'));
  }
}

void obstacle__unknown_devices_are_opened() {
  CHECK(!obstacle_of(device(DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_CERTAINTY_ASSUMED)));
}

void obstacle__a_cpu_without_instructions() {
  for (const auto coherence : {DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_COHERENCE_NONCOHERENT_CPU}) {
    const char* obstacle = obstacle_of(device(coherence, DAPPLEDV_CERTAINTY_OVERRIDE, false));
    CHECK(obstacle && std::strstr(obstacle, "no instruction"));
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(obstacle__coherent_devices_are_opened),
      TEST(obstacle__known_non_coherent_devices_are_refused_in_one_line),
      TEST(obstacle__bounced_devices_are_refused_in_one_line),
      TEST(obstacle__unknown_devices_are_opened),
      TEST(obstacle__a_cpu_without_instructions),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
