// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The programs of the scenarios that have open devices. Each runs one end of a pair of queue pairs, on a thread of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/sim/threads/process.hpp"

namespace dapple::sim {

inline constexpr uint64_t kMicrosecond = 1000;

// The processes share this plain data.
struct End {
  enum class Program : uint8_t {
    kMessages,
    kSeldomPolls,
    kRoom,
    kEndOfPolls,
  };
  Program program = Program::kMessages;
  int process = 0;
  uint32_t pair = 0;
  uint32_t sends = 0, receives = 0;  // in all
  uint32_t window = 1;               // Sends under way
  bool answers = false;              // each Send answers a receive
  size_t size = 16;
  // Once the peer is connected, and that many messages are there, it only waits for events.
  uint32_t polled_receives = UINT32_MAX;
  uint64_t longest_gap = 0;    // nanoseconds between Sends
  uint64_t longest_delay = 0;  // the same, before it connects
  bool writes = false;         // to the peer's memory, before each Send
  bool is_late = false;        // posts a receive some time after the last message
};

// Returns when this end is connected: the memory of the other end.
Endpoint::Target connect(const End& end, Endpoint& endpoint);
// From now on both queue pairs receive.
bool are_connected(const End& end);
void await_connection(const End& end);

// Sends now and then; receives while it polls, and then while it computes and rarely polls.
void poll_seldom(const End& end);
// Sends more than a ring has room for, and then rarely polls; receives while it polls.
void wait_for_room(const End& end);
// Sends all the time; receives while it polls, and in between waits for an event.
void stop_to_poll(const End& end);

}  // namespace dapple::sim
