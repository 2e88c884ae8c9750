// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "tools/perf/common/parameters.hpp"

namespace dapple::perf {

// The whole of dapple-test, dapple-lat or dapple-bw; returns the exit code.
int run_program(Kind kind, int argc, char** argv);

}  // namespace dapple::perf
