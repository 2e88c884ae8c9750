// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/check/reports/reporter.hpp"

namespace dapple::soft::explain {

// The check's reporter under dapple-run --check, one of its own under --explain; null in other programs. The first call
// reads the options, and lets refusals be explained.
check::Reporter* process_reporter();

}  // namespace dapple::soft::explain
