// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The names with which programs for DAT 2.0 open the ports of this machine's RDMA devices.
#pragma once

#include <string>
#include <vector>

#include "udapl/registry/configuration/conf_parser.hpp"
#include "udapl/registry/configuration/rdma_ports.hpp"

namespace dapple::tools {

struct NamedPort {
  registry::RdmaPort port;
  // The name of the first line for the port that is not thread-safe, otherwise the automatic name. Empty: the port has
  // no network device.
  std::string ia;
};

// lines: those of dat.conf.
std::vector<NamedPort> named_ports(std::vector<registry::RdmaPort> ports,
                                   const std::vector<registry::ConfEntry>& lines);
// The ports of this machine and the lines of its dat.conf. Prints no messages.
std::vector<NamedPort> named_ports();

// The name of the first port that belongs to this RDMA device or network device, or has this address. Active ports come
// first. Empty if there is none.
std::string ia_of(const std::vector<NamedPort>& ports, const std::string& device);

// True if this name opens a port that is active and has an address.
bool is_of_active_port(const std::vector<NamedPort>& ports, const std::string& ia);

// True if a line of dat.conf or an automatic entry for DAT 2.0 has this name. Prints no messages.
bool is_name_here(const std::string& ia);

// "ofa-v2-d0 (rxe0, d0)": each name with its port, separated by commas; active ports only.
std::string names_of(const std::vector<NamedPort>& ports);

}  // namespace dapple::tools
