// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/threads/run.hpp"

namespace dapple::sim {

// Weakens each memory order of the source files whose names contain `files`, one line at a time, and runs the seeds
// until one fails. Prints a line for each, and returns 1 if some order is weakened without a failure.
int weaken_orders(const Modules& modules, const std::vector<const Scenario*>& scenarios, const std::string& files,
                  uint64_t first, uint64_t last);

}  // namespace dapple::sim
