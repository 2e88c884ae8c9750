// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "provider/protocol/device_attributes.hpp"

namespace dapple::face {

// The CPUs of a NUMA node of this machine as sysfs lists them, such as "0-15,32-47". As the kernel shows it for a PCI
// function without a node, all online CPUs if the node is -1; the same if this machine lacks the node. "0" without
// sysfs.
void read_cpu_list(int32_t numa_node, char (&list)[soft::kCpuListSize]);

}  // namespace dapple::face
