// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transports of the connections of programs that use the software device: shared memory, or UDP and the reason.
#pragma once

#include <string>
#include <vector>

#include "provider/member/daemon_link.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

// One program's.
struct ProgramTransports {
  uint32_t slot = 0;
  uint32_t process = 0;                               // 0: not visible to dappled
  soft::Transport no_rings = soft::Transport::kNone;  // why it has no shared memory at all
  uint64_t ring_bytes = 0, most_ring_bytes = 0;
  uint64_t unlisted_queue_pairs = 0;
  std::vector<soft::TransportRow> rows;
};

struct NodeTransports {
  std::string problem;  // why dappled does not tell; empty if it does
  std::vector<ProgramTransports> programs;
};

NodeTransports read_transports(soft::DaemonLink& link);

// Empty if no program has a slot.
std::string transports_for_people(const NodeTransports& transports);
// Two arrays: a member of `programs` for each program, and one of `transports` for each of its peers and transports.
Json transport_programs_as_json(const NodeTransports& transports);
Json transports_as_json(const NodeTransports& transports);

}  // namespace dapple::info
