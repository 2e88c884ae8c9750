// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This machine's libibverbs, as far as drivers and overlays depend on its private interface.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json.hpp"

namespace dapple::info {

struct Libibverbs {
  std::string path;
  unsigned int private_abi = 0;  // N of IBVERBS_PRIVATE_N and of libNAME-rdmavN.so; 0 if it was not found
  std::string overlay_problem;   // why no overlay works with it; empty if one does
  // Driver libraries with another number: in its folder, or named in RDMAV_DRIVERS or /etc/libibverbs.d.
  std::vector<std::string> foreign_drivers;
};

Libibverbs read_libibverbs();

// The number in a driver library's name, libmlx5-rdmav34.so; 0 for any other name.
unsigned int driver_abi(const std::string& name);

// Empty if there is nothing to report.
std::string libibverbs_for_people(const Libibverbs& library);
Json libibverbs_as_json(const Libibverbs& library);

}  // namespace dapple::info
