// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The software device of this network namespace, as dappled reports it: its RDMA devices, the UDP port, the programs,
// the transports of their connections, and the sums of their counters.
#pragma once

#include <string>
#include <vector>

#include "provider/network/port_owner.hpp"
#include "provider/protocol/messages.hpp"
#include "tools/dapple-info/node_transports.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

struct SoftReport {
  std::string problem;   // why dappled does not answer; empty if it does
  bool started = false;  // dappled was started for this report
  soft::StatusReply status;
  std::vector<soft::DeviceInfo> devices;
  soft::PortOwner owner;  // of the UDP port
  NodeTransports transports;
};

// Starts dappled if it does not run; the new dappled ends soon afterwards.
SoftReport read_soft();

// The counters in a report for people. A document has all of them.
enum class Counters { kNonzero, kAll };

std::string soft_for_people(const SoftReport& report, Counters wanted);
Json soft_as_json(const SoftReport& report);

}  // namespace dapple::info
