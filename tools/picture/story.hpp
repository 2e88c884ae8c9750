// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The contents of a trace: items on lanes, arrows between them, and the pairs of queue pairs that talked with each
// other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/report/json.hpp"

namespace dapple::picture {

enum class Kind : uint8_t {
  kCall,
  kPost,
  kPacket,
  kAcknowledgement,
  kRequest,
  kCompletion,
  kPoll,
  kWait,
  kEvent,
  kFinding,
};
inline constexpr const char* kKindNames[] = {"call",       "post", "packet", "acknowledgement", "request",
                                             "completion", "poll", "wait",   "event",           "finding"};
inline const char* name_of(Kind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

// The lanes of one process, or of the wires, stand together.
struct Lane {
  uint32_t process = 0;  // 0: the wires
  uint32_t thread = 0;   // 0 for queue pairs, completion queues and wires
  std::string name;
};

struct Item {
  Kind kind{};
  size_t lane = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;   // not before begin_ns
  uint32_t qpn = 0;     // the queue pair that it is about, for a packet the sending one; 0: none
  uint32_t to_qpn = 0;  // of a packet
  uint64_t cq = 0;      // the completion queue of a completion, a poll, a wait, or a request for an event
  std::string name;
  Json details = Json::object();
  bool bad = false;   // an error, a packet that is sent again, a finding
  bool both = false;  // of a packet: seen at its sender and at its receiver
};

struct Process {
  uint32_t number = 0;
  std::string program;  // empty: unknown
};

// Two queue pairs that exchange packets. The trace may lack the second one.
struct Connection {
  uint32_t qpns[2] = {};
  uint32_t processes[2] = {};  // 0: not in the trace
};

struct Story {
  std::vector<Process> processes;
  std::vector<Lane> lanes;
  std::vector<Item> items;
  std::vector<std::pair<size_t, size_t>> arrows;
  std::vector<Connection> connections;

  int64_t begin_ns = 0;  // of the first item
  int64_t end_ns = 0;

  void assert_consistent() const;
};

}  // namespace dapple::picture
