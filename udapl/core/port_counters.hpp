// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's and the device's counters of a port, for all of its users, while they are started.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "udapl/core/counters.hpp"

namespace dapple::dat {

// DAT_IA_COUNTER_TYPE.
enum class CounterGroup : uint8_t { kConnectionManager, kLink, kDiagnostic };
inline constexpr size_t kCounterGroups = 3;

// All calls are made with the control mutex held. Reading opens files of sysfs.
class PortCounters {
 public:
  void open(const char* device, int port);

  // From here on the group's counters tell what has been added since; starting anew begins at 0.
  void start(CounterGroup group);
  // The group's counters stay as they are.
  void stop(CounterGroup group);

  // By the position of an IaCounter; 0 for one that is in no group, whose group was never started, or that this device
  // does not have.
  uint64_t at(size_t index) const;
  void reset(size_t index);

 private:
  enum class State : uint8_t { kUnused, kRunning, kStopped };
  uint64_t read(size_t row) const;
  State state_of(size_t row) const;

  std::string device_;
  int port_ = 0;
  std::array<State, kCounterGroups> states_{};
  // While running the value at the start, then what came of it.
  CounterBases<kIaCounters> values_{};
};

}  // namespace dapple::dat
