// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/node_ways.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "provider/member/gid.hpp"
#include "tools/report/table.hpp"

namespace dapple::info {
namespace {

using soft::Way;
using Rows = std::vector<std::vector<std::string>>;

constexpr uint64_t kKib = 1024, kMib = 1024 * kKib;

// Empty for datagrams, which have no peer.
std::string text_of_address(const soft::WayRow& row, const uint8_t (&gid)[16]) {
  if (row.way == Way::kDatagrams) return "";
  char text[INET6_ADDRSTRLEN];
  const bool ipv4 = soft::is_ipv4(gid);
  return inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, sizeof text) != nullptr ? text : "";
}

std::string text_of_process(uint32_t process) {
  return process != 0 ? std::to_string(process) : "not visible";
}

const ProgramWays* find(const NodeWays& ways, uint32_t slot) {
  const auto found = std::find_if(ways.programs.begin(), ways.programs.end(),
                                  [slot](const ProgramWays& program) { return program.slot == slot; });
  return slot == 0 || found == ways.programs.end() ? nullptr : &*found;
}

// The peer's process number if it is of this host and still there, or 0.
uint32_t peer_of(const NodeWays& ways, const soft::WayRow& row) {
  if (row.way == Way::kPeerGone) return 0;
  const ProgramWays* peer = find(ways, row.slot);
  return peer == nullptr ? 0 : peer->process;
}

std::string reason_of(const NodeWays& ways, const soft::WayRow& row) {
  const std::string reason = soft::name_of(row.way).title;
  if (row.way != Way::kPeerTakesNone) return reason;
  const ProgramWays* peer = find(ways, row.slot);
  if (peer == nullptr) return reason + ": no program has its slot";
  return peer->no_rings == Way::kNone ? reason : reason + ": " + soft::name_of(peer->no_rings).title;
}

std::string text_of_bytes(uint64_t bytes) {
  return bytes % kMib == 0 ? fmt::format("{} MiB", bytes / kMib) : fmt::format("{} KiB", bytes / kKib);
}

std::string memory_of(const ProgramWays& program) {
  if (program.no_rings != Way::kNone) return fmt::format("none: {}", soft::name_of(program.no_rings).title);
  return fmt::format("{} of at most {}", text_of_bytes(program.ring_bytes), text_of_bytes(program.most_ring_bytes));
}

}  // namespace

NodeWays read_ways(soft::DaemonLink& link) {
  NodeWays ways;
  soft::Problem problem;
  soft::WaysReply reply;
  uint32_t slot = 1, first = 0;
  // A dappled that does not go on to the next program is none of ours.
  const uint32_t most_questions = soft::kMaxSlots * (1 + soft::kMaxWayRows / soft::WaysReply::kRows);
  for (uint32_t i = 0; i < most_questions; i++) {
    if (!link.ways(slot, first, reply, problem)) {
      ways.problem = problem.line;
      return ways;
    }
    if (reply.slot == 0) break;
    // The program may have ended since its first rows were read, and another one is in the answer.
    if (ways.programs.empty() || ways.programs.back().slot != reply.slot) {
      ways.programs.push_back({reply.slot,
                               reply.process,
                               reply.no_rings,
                               reply.ring_bytes,
                               reply.most_ring_bytes,
                               reply.unlisted_queue_pairs,
                               {}});
    }
    auto& rows = ways.programs.back().rows;
    rows.insert(rows.end(), reply.rows, reply.rows + std::min(reply.count, soft::WaysReply::kRows));
    slot = reply.next != 0 ? reply.slot : reply.slot + 1;
    first = reply.next;
  }
  return ways;
}

std::string ways_for_people(const NodeWays& ways) {
  if (!ways.problem.empty()) return fmt::format("Ways of connections: not available: {}\n", ways.problem);
  if (ways.programs.empty()) return "";
  Rows programs{{"PROCESS", "SHARED MEMORY"}};
  Rows rows{{"PROCESS", "QUEUE PAIRS", "ADDRESS", "PEER", "PEER'S PROCESS", "WAY", "REASON", "PEER MAY COPY HERE"}};
  uint64_t unlisted = 0;
  for (const ProgramWays& program : ways.programs) {
    const std::string process = text_of_process(program.process);
    programs.push_back({process, memory_of(program)});
    unlisted += program.unlisted_queue_pairs;
    for (const soft::WayRow& row : program.rows) {
      const uint32_t peer = peer_of(ways, row);
      rows.push_back({process, std::to_string(row.queue_pairs), text_of_address(row, row.source),
                      text_of_address(row, row.destination), peer != 0 ? std::to_string(peer) : "",
                      row.way == Way::kSharedMemory ? "shared memory" : "UDP", reason_of(ways, row),
                      soft::name_of(row.right).title});
    }
  }
  std::string text = format_table(programs);
  if (rows.size() > 1) text += "\n" + format_table(rows);
  if (unlisted != 0) text += fmt::format("{} more queue pairs are not listed\n", unlisted);
  return text;
}

Json way_programs_as_json(const NodeWays& ways) {
  Json programs = Json::array();
  for (const ProgramWays& program : ways.programs) {
    programs.push_back(
        {{"process", program.process != 0 ? Json(program.process) : Json()},
         {"no_shared_memory", program.no_rings != Way::kNone ? Json(soft::name_of(program.no_rings).key) : Json()},
         {"shared_memory_bytes", program.ring_bytes},
         {"shared_memory_most_bytes", program.most_ring_bytes},
         {"unlisted_queue_pairs", program.unlisted_queue_pairs}});
  }
  return programs;
}

Json ways_as_json(const NodeWays& ways) {
  Json list = Json::array();
  for (const ProgramWays& program : ways.programs) {
    for (const soft::WayRow& row : program.rows) {
      const uint32_t peer = peer_of(ways, row);
      list.push_back({{"process", program.process != 0 ? Json(program.process) : Json()},
                      {"queue_pairs", row.queue_pairs},
                      {"address", text_of_address(row, row.source)},
                      {"peer", text_of_address(row, row.destination)},
                      {"peer_process", peer != 0 ? Json(peer) : Json()},
                      {"way", row.way == Way::kSharedMemory ? "shared_memory" : "udp"},
                      {"reason", row.way == Way::kSharedMemory ? Json() : Json(soft::name_of(row.way).key)},
                      {"explanation", reason_of(ways, row)},
                      {"peer_may_copy_here", row.right == soft::Right::kGranted},
                      {"peer_may_copy_here_reason", soft::name_of(row.right).key}});
    }
  }
  return list;
}

}  // namespace dapple::info
