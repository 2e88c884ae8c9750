// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soft {

// The place from which a verb was called; for a completion, its kind (fault_plan.hpp).
struct CallSite {
  uint64_t stack = 0;            // a hash of the callers' places in their files: the same in each run, whatever the
                                 // addresses
  const void* caller = nullptr;  // the return address of the innermost caller outside of the libraries of RDMA
};

// The call site of the caller's caller. It takes microseconds, and allocates memory at its first call.
CallSite call_site();

// Its caller for people: "send_ping at ping.c:12", or a file and an offset there without debug information. A function
// of a system's header that is inlined there does not count. It takes milliseconds. The text may be cut.
void name_caller(const void* caller, char (&text)[64]);

}  // namespace dapple::soft
