// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <vector>

#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

std::vector<Scenario>& all_scenarios() {
  static std::vector<Scenario> all;
  return all;
}

Module own = {};

}  // namespace

extern "C" Module* sim_module() {
  std::vector<Scenario>& all = all_scenarios();
  if (all.empty()) {
    for (const auto& part :
         {litmus_scenarios(), ring_scenarios(), placement_scenarios(), handover_scenarios(), node_scenarios()})
      all.insert(all.end(), part.begin(), part.end());
    own = {all.data(), all.size(), run_program, nullptr};
  }
  return &own;
}

}  // namespace dapple::sim
