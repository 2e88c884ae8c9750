// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

#include <optional>

namespace dapple::run::doctor {

// The smallest limit of memory, in bytes, among the control groups of this process and those above them. Empty without
// a limit. Reads /proc/self/cgroup and the files below /sys/fs/cgroup, of both versions of control groups.
std::optional<uint64_t> memory_limit();

}  // namespace dapple::run::doctor
