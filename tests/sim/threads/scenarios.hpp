// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <vector>

#include "tests/sim/threads/host.hpp"

namespace dapple::sim {

// Tests of the memory model itself.
std::vector<Scenario> litmus_scenarios();
// The ring between two processes: entries, sleep, room.
std::vector<Scenario> ring_scenarios();
// Copies to and from a peer's memory, and the end of its keys and queue pairs.
std::vector<Scenario> placement_scenarios();
// The pairs of functions by which threads hand work to each other.
std::vector<Scenario> handover_scenarios();
// Programs with queue pairs, and their background threads.
std::vector<Scenario> node_scenarios();
// A program of the scenario that the other process' module has started.
void run_program(void* argument);

extern "C" __attribute__((visibility("default"))) Module* sim_module();

}  // namespace dapple::sim
