// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ways of the connections of programs that use the software device: shared memory, or UDP and the reason.
#pragma once

#include <string>
#include <vector>

#include "provider/member/daemon_link.hpp"
#include "tools/report/json.hpp"

namespace dapple::info {

// One program's.
struct ProgramWays {
  uint32_t slot = 0;
  uint32_t process = 0;                   // 0: not visible to dappled
  soft::Way no_rings = soft::Way::kNone;  // why it has no shared memory at all
  uint64_t ring_bytes = 0, most_ring_bytes = 0;
  uint64_t unlisted_queue_pairs = 0;
  std::vector<soft::WayRow> rows;
};

struct NodeWays {
  std::string problem;  // why dappled does not tell; empty if it does
  std::vector<ProgramWays> programs;
};

NodeWays read_ways(soft::DaemonLink& link);

// Empty if no program has a slot.
std::string ways_for_people(const NodeWays& ways);
// Two arrays: a member of `programs` for each program, and one of `ways` for each of its peers and ways.
Json way_programs_as_json(const NodeWays& ways);
Json ways_as_json(const NodeWays& ways);

}  // namespace dapple::info
