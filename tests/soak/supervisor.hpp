// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>

namespace dapple::soak {

struct Settings {
  uint64_t seconds = 60;
  uint64_t seed = 1;
  uint32_t pairs = 12;
  std::string only;  // a kind; empty: all
  std::string logs;  // a folder for the workers' logs; empty: a temporary one, which goes unless something fails
};

// Runs the test, and prints its course and a summary. True if nothing failed.
bool supervise(const Settings& settings);

}  // namespace dapple::soak
