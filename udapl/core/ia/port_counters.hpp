// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's and the device's counters of a port, which count for all of its users while they are started.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "udapl/core/counters.hpp"

namespace dapple::udapl {

// DAT_IA_COUNTER_TYPE.
enum class CounterGroup : uint8_t { kConnectionManager, kLink, kDiagnostic };
inline constexpr size_t kCounterGroups = 3;

// All calls are made with the control mutex held. Reading opens files of sysfs.
class PortCounters {
 public:
  void open(const char* device, int port);

  // Starts the group: its counters begin at 0 and show what is added from here on.
  void start(CounterGroup group);
  // Stops the group: its counters keep their values.
  void stop(CounterGroup group);

  // The value of a counter by the position of an IaCounter. It is 0 for a counter that is in no group, whose group was
  // never started, or that this device lacks.
  uint64_t at(size_t index) const;
  void reset(size_t index);

 private:
  enum class State : uint8_t { kUnused, kRunning, kStopped };
  uint64_t read(size_t row) const;
  State state_of(size_t row) const;

  std::string device_;
  int port_ = 0;
  std::array<State, kCounterGroups> states_{};
  // While the group runs: the value at the start. Afterwards: the difference.
  std::array<uint64_t, kIaCounters> values_{};
};

}  // namespace dapple::udapl
