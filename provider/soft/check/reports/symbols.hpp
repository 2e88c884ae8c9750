// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Names for the addresses of a stack: by the debug information if the machine has libdw (elfutils), otherwise by the
// dynamic symbols.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

struct Frame {
  std::string module;    // the file's path
  uint64_t offset = 0;   // in the file, of the return address
  std::string function;  // empty if it is not known
  std::string source;    // the file's name; empty if it is not known
  int line = 0;
};

// A caller in a stack, as the dynamic linker knows it.
struct Caller {
  enum class Code {
    kOther,
    kDevice,       // dapple's own libraries but uDAPL
    kOwnLibrpma,   // dapple's librpma
    kInterpreter,  // of the stack's script
  };
  uintptr_t address = 0;
  Code code = Code::kOther;
  Frame known;
};
struct Callers {
  std::vector<Caller> all;
  uint32_t script = 0;
};
// Any thread may call it, also while another one is in dlopen() or dlclose().
Callers callers_of(const Stack& stack);

// Without the frames of the device and of librpma, and with those of functions that the compiler has inlined. Needs no
// dynamic linker after prepare_symbols().
std::vector<Frame> frames_of(const Callers& callers);

// True if librdmacm has called the verb. It does not need debug information.
bool called_by_rdma_cm(const Stack& stack);

// Loads libdw, so that a report does not have to.
void prepare_symbols();

}  // namespace dapple::soft::check
