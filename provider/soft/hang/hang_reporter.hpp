// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/check/reports/reporter.hpp"

namespace dapple::soft::hang {

// The reporter of --check or --explain, or one of its own. The first call reads the options, and prepares forks.
check::Reporter& hang_reporter();

}  // namespace dapple::soft::hang
