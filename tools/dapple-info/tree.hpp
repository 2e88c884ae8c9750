// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info --tree: the contents of /sys/class/infiniband in a folder, for containers and static programs.
#pragma once

#include <string>

namespace dapple::info {

// Lets dappled fill the folder and keep it up to date, until a signal ends this process. Makes the folder if it does
// not exist, and then removes it at the end. Returns the exit code: 0, or 1 after one line with the reason.
int keep_tree(const std::string& folder);

}  // namespace dapple::info
