// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/threads/host.hpp"
#include "tests/sim/threads/machine.hpp"

namespace dapple::sim {

// The module, loaded for each process of the world.
class Modules {
 public:
  // Ends the program if it cannot be loaded.
  explicit Modules(const std::string& file);

  const Module& module() const { return *module_; }
  uint64_t base() const { return base_; }
  uint64_t size() const { return size_; }
  uint64_t peer_base() const { return peer_base_; }

 private:
  Module* module_ = nullptr;
  uint64_t base_ = 0, size_ = 0, peer_base_ = 0;
};

struct Options {
  bool verbose = false;
  Sites* sites = nullptr;
  std::vector<uint64_t> weakened = {};
  Order weaker = std::memory_order_relaxed;
};

// One run, in a process of its own.
Verdict run_seed(const Modules& modules, const Scenario& scenario, uint64_t seed, const Options& options = {});

}  // namespace dapple::sim
