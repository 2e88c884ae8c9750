// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The entries that the system itself has in the places that a tree shows.
#pragma once

#include <vector>

#include "provider/face/model.hpp"

namespace dapple::dappled {

// The kernel's own RDMA devices; empty if it has none.
std::vector<face::KernelEntry> kernel_entries();

// Fills in the real folder of the device's netdev, if its tree shows it.
void find_netdev_entries(face::ShownDevice& device);

}  // namespace dapple::dappled
