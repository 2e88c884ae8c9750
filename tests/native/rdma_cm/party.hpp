// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two programs of rdma_cm for tests that disturb them: a server that echoes messages, and a client that connects, sends
// some, disconnects, and begins again. Both check that events come as rdma_cm documents them.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::tests {

inline constexpr uint32_t kErrnos = 160;
inline constexpr uint32_t kEventKinds = 16;

// In memory that a party shares with the test.
struct PartyNews {
  std::atomic<uint64_t> steps{0};   // events and messages: grows as long as the party makes progress
  std::atomic<uint64_t> done{0};    // connections that were made, used and ended as documented
  std::atomic<uint64_t> broken{0};  // connections that ended in another way
  std::atomic<uint32_t> open{0};    // the present number of ids, without the listener's
  std::atomic<bool> ready{false};   // the server listens
  std::atomic<uint32_t> calls_failed[kErrnos] = {};
  std::atomic<uint32_t> events[kEventKinds] = {};
  std::atomic<uint32_t> slowest_ms{0};  // the longest time between two steps of an id
  char problem[200] = "";
};

// Orders from the test, in shared memory too.
struct PartyOrders {
  std::atomic<bool> stop{false};
  std::atomic<bool> rest{false};  // begin no connection
};

struct PartyOptions {
  uint16_t port = 7174;
  uint32_t at_once = 3;        // a client's simultaneous connections
  uint64_t connections = 0;    // a client ends after this number of connections; 0: it goes on
  uint32_t messages = 3;       // messages of a connection
  bool calm = true;            // nobody is killed: every connection must succeed
  uint32_t most_pause_ms = 0;  // random pause between the last message and the disconnection
  uint32_t reject_one_in = 0;  // the server rejects one request in this number; 0: none
  double patience = 40;        // the seconds that an id may stay without a step
};

// The end of a party.
enum PartyEnd : int { kPartyStopped = 0, kPartyFailed = 12 };

PartyEnd serve(const PartyOptions& options, PartyNews& news, const PartyOrders& orders);
PartyEnd call(const PartyOptions& options, PartyNews& news, const PartyOrders& orders);

}  // namespace dapple::tests
