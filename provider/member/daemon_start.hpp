// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "provider/system/problem.hpp"

namespace dapple::soft {

enum class Starting : uint8_t {
  kFirst,    // none serves this network namespace
  kReplace,  // the limits of the one that serves are too low, and it yields to a less limited one
};

// Starts dappled and waits until it listens, or until it reports that another one listens; true in both cases.
// DAPPLE_DAPPLED names the program; by default it is the one beside the file of this code. The calling program gets no
// SIGCHLD and no child to wait for. ESRCH: dappled ended without a report.
bool start_daemon(Starting starting, Problem& problem);

}  // namespace dapple::soft
