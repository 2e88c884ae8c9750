// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/node_transports.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "provider/network/gid.hpp"
#include "tools/report/table.hpp"

namespace dapple::info {
namespace {

using soft::Transport;
using Rows = std::vector<std::vector<std::string>>;

constexpr uint64_t kKib = 1024, kMib = 1024 * kKib;

// Empty for datagrams, which have no peer.
std::string text_of_address(const soft::TransportRow& row, const uint8_t (&gid)[16]) {
  if (row.transport == Transport::kDatagrams) return "";
  char text[INET6_ADDRSTRLEN];
  const bool ipv4 = soft::is_ipv4(gid);
  return inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, sizeof text) != nullptr ? text : "";
}

std::string text_of_process(uint32_t process) {
  return process != 0 ? std::to_string(process) : "not visible";
}

const ProgramTransports* find(const NodeTransports& transports, uint32_t slot) {
  const auto found = std::find_if(transports.programs.begin(), transports.programs.end(),
                                  [slot](const ProgramTransports& program) { return program.slot == slot; });
  return slot == 0 || found == transports.programs.end() ? nullptr : &*found;
}

// The peer's process number if it is of this host and still there, or 0.
uint32_t peer_of(const NodeTransports& transports, const soft::TransportRow& row) {
  if (row.transport == Transport::kPeerGone) return 0;
  const ProgramTransports* peer = find(transports, row.slot);
  return peer == nullptr ? 0 : peer->process;
}

std::string reason_of(const NodeTransports& transports, const soft::TransportRow& row) {
  std::string reason = soft::name_of(row.transport).title;
  if (row.transport != Transport::kPeerTakesNone) return reason;
  const ProgramTransports* peer = find(transports, row.slot);
  if (peer == nullptr) return reason + ": no program has its slot";
  return peer->no_rings == Transport::kNone ? reason : reason + ": " + soft::name_of(peer->no_rings).title;
}

std::string text_of_bytes(uint64_t bytes) {
  return bytes % kMib == 0 ? fmt::format("{} MiB", bytes / kMib) : fmt::format("{} KiB", bytes / kKib);
}

std::string memory_of(const ProgramTransports& program) {
  if (program.no_rings != Transport::kNone) return fmt::format("none: {}", soft::name_of(program.no_rings).title);
  return fmt::format("{} of at most {}", text_of_bytes(program.ring_bytes), text_of_bytes(program.most_ring_bytes));
}

}  // namespace

NodeTransports read_transports(soft::DaemonLink& link) {
  NodeTransports transports;
  soft::Problem problem;
  soft::TransportsReply reply;
  uint32_t slot = 1, first = 0;
  // A dappled that does not go on to the next program is none of ours.
  const uint32_t most_questions = soft::kMaxSlots * (1 + soft::kMaxTransportRows / soft::TransportsReply::kRows);
  for (uint32_t i = 0; i < most_questions; i++) {
    if (!link.transports(slot, first, reply, problem)) {
      transports.problem = problem.line;
      return transports;
    }
    if (reply.slot == 0) break;
    // The program may have ended since its first rows were read, and another one is in the answer.
    if (transports.programs.empty() || transports.programs.back().slot != reply.slot) {
      transports.programs.push_back({reply.slot,
                                     reply.process,
                                     reply.no_rings,
                                     reply.ring_bytes,
                                     reply.most_ring_bytes,
                                     reply.unlisted_queue_pairs,
                                     {}});
    }
    auto& rows = transports.programs.back().rows;
    rows.insert(rows.end(), reply.rows, reply.rows + std::min(reply.count, soft::TransportsReply::kRows));
    slot = reply.next != 0 ? reply.slot : reply.slot + 1;
    first = reply.next;
  }
  return transports;
}

std::string transports_for_people(const NodeTransports& transports) {
  if (!transports.problem.empty())
    return fmt::format("Transports of connections: not available: {}\n", transports.problem);
  if (transports.programs.empty()) return "";
  Rows programs{{"PROCESS", "SHARED MEMORY"}};
  Rows rows{{"PROCESS", "QUEUE PAIRS", "ADDRESS", "PEER", "PEER'S PROCESS", "WAY", "REASON", "PEER MAY COPY HERE"}};
  uint64_t unlisted = 0;
  for (const ProgramTransports& program : transports.programs) {
    const std::string process = text_of_process(program.process);
    programs.push_back({process, memory_of(program)});
    unlisted += program.unlisted_queue_pairs;
    for (const soft::TransportRow& row : program.rows) {
      const uint32_t peer = peer_of(transports, row);
      rows.push_back({process, std::to_string(row.queue_pairs), text_of_address(row, row.source),
                      text_of_address(row, row.destination), peer != 0 ? std::to_string(peer) : "",
                      row.transport == Transport::kSharedMemory ? "shared memory" : "UDP", reason_of(transports, row),
                      soft::name_of(row.right).title});
    }
  }
  std::string text = format_table(programs);
  if (rows.size() > 1) text += "\n" + format_table(rows);
  if (unlisted != 0) text += fmt::format("{} more queue pairs are not listed\n", unlisted);
  return text;
}

Json transport_programs_as_json(const NodeTransports& transports) {
  Json programs = Json::array();
  for (const ProgramTransports& program : transports.programs) {
    programs.push_back({{"process", program.process != 0 ? Json(program.process) : Json()},
                        {"no_shared_memory",
                         program.no_rings != Transport::kNone ? Json(soft::name_of(program.no_rings).key) : Json()},
                        {"shared_memory_bytes", program.ring_bytes},
                        {"shared_memory_most_bytes", program.most_ring_bytes},
                        {"unlisted_queue_pairs", program.unlisted_queue_pairs}});
  }
  return programs;
}

Json transports_as_json(const NodeTransports& transports) {
  Json list = Json::array();
  for (const ProgramTransports& program : transports.programs) {
    for (const soft::TransportRow& row : program.rows) {
      const uint32_t peer = peer_of(transports, row);
      list.push_back(
          {{"process", program.process != 0 ? Json(program.process) : Json()},
           {"queue_pairs", row.queue_pairs},
           {"address", text_of_address(row, row.source)},
           {"peer", text_of_address(row, row.destination)},
           {"peer_process", peer != 0 ? Json(peer) : Json()},
           {"transport", row.transport == Transport::kSharedMemory ? "shared_memory" : "udp"},
           {"reason", row.transport == Transport::kSharedMemory ? Json() : Json(soft::name_of(row.transport).key)},
           {"explanation", reason_of(transports, row)},
           {"peer_may_copy_here", row.right == soft::Right::kGranted},
           {"peer_may_copy_here_reason", soft::name_of(row.right).key}});
    }
  }
  return list;
}

}  // namespace dapple::info
