// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Dwfl;

namespace dapple::source_lines {

// Text that is not known is empty, and such a line 0.
struct SourcePlace {
  std::string function;  // as the linker knows it, so functions of C++ may be mangled
  std::string source;    // the file's name
  int line = 0;
};

// This process' modules at the time of the construction.
class DebugInformation {
 public:
  DebugInformation();
  ~DebugInformation();
  DebugInformation(const DebugInformation&) = delete;
  DebugInformation& operator=(const DebugInformation&) = delete;

  // The function of the instruction at this address, after the functions that the compiler has inlined there, the
  // innermost first. Empty if nothing is known. It needs more than 150 KB of stack.
  std::vector<SourcePlace> find(uint64_t address) const;

 private:
  Dwfl* modules_ = nullptr;
};

}  // namespace dapple::source_lines
