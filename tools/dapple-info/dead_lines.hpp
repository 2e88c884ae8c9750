// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Lines of dat.conf for devices of other machines: the file that Debian's libdapl2 installed has 62 lines, of which
// most machines can use none.
#pragma once

#include <string>
#include <vector>

#include "udapl/registry/conf_parser.hpp"

namespace dapple::info {

// All that a line may name here: RDMA devices, network devices, their addresses, and what /etc/hosts has.
std::vector<std::string> names_here();

// True if the line is of a provider whose ia_params begin with a name or an address, and there is nothing of that name
// here. A name with a dot is taken for a host's, which would take DNS to look up, and counts as here.
bool is_dead(const dat::ConfEntry& line, const std::vector<std::string>& here);

}  // namespace dapple::info
