// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RoCEv2 port of this network namespace, and the dappled that has it.
#pragma once

#include "tools/dapple-run/doctor/line.hpp"

namespace dapple::run::doctor {

struct DaemonLines {
  Line port;
  Line dappled;
};

// Starts dappled if none runs. It ends soon after this process.
DaemonLines daemon();

}  // namespace dapple::run::doctor
