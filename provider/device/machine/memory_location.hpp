// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The places of sysfs that show memory: persistent memory and its domain, and memory that is attached by CXL. root: ""
// for this machine, else the folder that holds another one's sys and proc.
#pragma once

#include <infiniband/dappledv.h>

#include "provider/device/machine/files.hpp"

namespace dapple::provider {

// The domain of a memory device. device: its folder in sysfs, resolved, or one below. Unspecified if `device` is empty.
dappledv_persistence persistence_of(const Path& device);
// True if the device, or one above it, is on the CXL bus.
bool is_on_cxl(const Path& device);

// The folder of a character or block device, resolved; empty if sysfs does not show it. kind: "char" or "block".
Path find_numbered_device(const Path& root, const char* kind, unsigned major, unsigned minor);

// Tells if a NUMA node's memory is attached by CXL, as far as the kernel shows: yes if a CXL device has been given to
// it, no if this machine has no CXL, else unknown.
dappledv_answer is_node_on_cxl(const Path& root, unsigned node);
// No if the firmware describes no CXL to the kernel; else unknown.
dappledv_answer has_cxl(const Path& root);

}  // namespace dapple::provider
