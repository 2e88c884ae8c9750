// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Lines about the system: its C library, network devices, system calls, namespaces and limits.
#pragma once

#include "tools/dapple-run/doctor/line.hpp"

namespace dapple::run::doctor {

Line c_library();
Line network();
Line system_calls();
Line namespaces();
Line limits();

}  // namespace dapple::run::doctor
