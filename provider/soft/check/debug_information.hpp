// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// libdw of elfutils, if the machine has it. It is loaded at run time, so no program depends on it.
#pragma once

#include <cstdint>
#include <string>

struct Dwfl;

namespace dapple::soft::check {

// This process' modules at the time of the construction.
class DebugInformation {
 public:
  DebugInformation();
  ~DebugInformation();
  DebugInformation(const DebugInformation&) = delete;
  DebugInformation& operator=(const DebugInformation&) = delete;

  // Sets the function, the source file and the line of the instruction at this address, as far as they are known.
  void find(uint64_t address, std::string& function, std::string& source, int& line) const;

 private:
  Dwfl* modules_ = nullptr;
};

// Loads the library, which stays loaded.
void load_debug_information();

}  // namespace dapple::soft::check
