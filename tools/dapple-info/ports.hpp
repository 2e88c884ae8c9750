// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A port for programs: names, addresses, and the MTU.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

#include "tools/dat/ports.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

struct Gid {
  uint32_t index = 0;
  std::string type;  // "RoCE v2"
  std::string gid;
};

struct Port {
  uint32_t number = 0;
  unsigned int mtu_bytes = 0;  // 0: unknown
  double gbit_s = 0;           // 0: unknown
  std::vector<Gid> gids;
  std::vector<std::string> addresses;  // of its network device
  std::string netdev;
  std::string ia;  // the name that opens it in uDAPL; may be empty
};

// Asks the open device. protocol: "ib", "roce", "iw". Values that it does not report stay unknown.
Port read_port(ibv_context* context, uint32_t number, const std::string& protocol);
// The signalling rate before the coding, for verbs' numbers of width and speed; 0 for unknown numbers.
double gbit_s_of(unsigned int width, unsigned int speed);

// Adds the system's and dat.conf's information about a port of this device.
void add_names(Port& port, const std::string& device, const std::vector<tools::NamedPort>& named);

// A row for each port, and one for each GID.
using Rows = std::vector<std::vector<std::string>>;
void add_port_rows(const std::string& device, const std::vector<Port>& ports, Rows& port_rows, Rows& gid_rows);
// Writes members into the port's JSON object.
Json port_as_json(const Port& port);

}  // namespace dapple::info
