// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Lines of dat.conf for devices of other machines: the file that Debian's libdapl2 installed has 62 lines, of which
// most machines can use none.
#pragma once

#include <string>
#include <vector>

#include "udapl/registry/configuration/conf_parser.hpp"

namespace dapple::info {

// All names that a line may use here: RDMA devices, network devices, their addresses, and names from /etc/hosts.
std::vector<std::string> names_here();

// True if the line's provider has ia_params that begin with a name or an address, and this machine lacks that name. A
// name with a dot may be a host's, which needs DNS, so it counts as present.
bool is_dead(const registry::ConfEntry& line, const std::vector<std::string>& here);

}  // namespace dapple::info
