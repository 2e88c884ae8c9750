// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's files about the software devices for programs into which no library can be loaded: dappled's tree,
// mounted over /sys and /dev in a mount namespace of this process.
#pragma once

#include <string>

namespace dapple::run {

// For this process, and the program that it becomes. dappled keeps the files up to date as long as the program lives.
// False on failure: nothing is mounted for any other process, and `reason` has one line.
bool mount_device_files(std::string& reason);

}  // namespace dapple::run
