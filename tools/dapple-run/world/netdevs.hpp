// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <vector>

#include "provider/face/identity/rail_netdev.hpp"

namespace dapple::run {

// The network devices of this network namespace, with the numbers of their addresses.
std::vector<face::RailNetdev> netdevs();

}  // namespace dapple::run
