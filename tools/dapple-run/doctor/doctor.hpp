// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run --doctor: does the software device work on this machine, and if not, why?
#pragma once

#include "tools/dapple-run/process/libraries.hpp"

namespace dapple::run::doctor {

// Prints ten lines on standard output. Returns 0 if programs have a device, otherwise 1. Starts dappled if none runs,
// which ends soon. Changes this process' environment.
int examine(const Libraries& libraries);

// The last of the lines alone, in a process that has the libraries of the device: opens every software device.
int examine_device();

}  // namespace dapple::run::doctor
