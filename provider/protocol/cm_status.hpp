// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The state and the counters of dappled's connection management, for dapple-info.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace dapple::soft {

struct CmStatus {
  // Present values.
  uint64_t channels = 0;
  uint64_t ids = 0;
  uint64_t resolving = 0;
  uint64_t listeners = 0;
  uint64_t connections = 0;
  uint64_t half_open = 0;
  uint64_t remembered = 0;
  // Since dappled began.
  uint64_t established = 0;
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t resent = 0;
  uint64_t timed_out = 0;
  uint64_t duplicates = 0;
  uint64_t unserved = 0;
  uint64_t stale = 0;
  uint64_t over_backlog = 0;
  uint64_t over_limit = 0;
  uint64_t evicted = 0;
  uint64_t forgotten = 0;
  uint64_t unexpected = 0;
  uint64_t unknown = 0;
  uint64_t foreign = 0;
  uint64_t unsupported = 0;
  uint64_t malformed = 0;
  uint64_t no_datagram = 0;
};

struct CmCounterName {
  const char* key;    // for programs
  const char* title;  // for people
};

// In the order of CmStatus' members.
inline constexpr CmCounterName kCmCounterNames[] = {
    {"channels", "event channels now"},
    {"ids", "rdma_cm ids now"},
    {"resolving", "ids that wait for a neighbour now"},
    {"listeners", "listeners now"},
    {"connections", "connections and handshakes now"},
    {"half_open", "incomplete handshakes of peers now"},
    {"remembered", "ended connections now whose peers do not know it yet"},
    {"established", "ends of connections established"},
    {"received", "datagrams received"},
    {"sent", "datagrams sent"},
    {"resent", "datagrams sent again after a time-out"},
    {"timed_out", "exchanges given up after the last time-out"},
    {"duplicates", "datagrams received again"},
    {"unserved", "requests refused: no listener"},
    {"stale", "requests refused: a stale connection of the peer"},
    {"over_backlog", "requests not answered: the listener's backlog is full"},
    {"over_limit", "requests not answered: too many connections"},
    {"evicted", "incomplete handshakes given up for newer ones"},
    {"forgotten", "remembered connections dropped for new ones"},
    {"unexpected", "datagrams out of place for the state"},
    {"unknown", "datagrams for an unknown connection"},
    {"foreign", "datagrams for the connection of another peer"},
    {"unsupported", "datagrams about alternate paths"},
    {"malformed", "malformed datagrams"},
    {"no_datagram", "packets for QP 0 or 1 that are no datagrams"},
};
inline constexpr size_t kCmCounterCount = sizeof kCmCounterNames / sizeof kCmCounterNames[0];

static_assert(std::is_standard_layout_v<CmStatus> && sizeof(CmStatus) == kCmCounterCount * sizeof(uint64_t));

// In the order of kCmCounterNames.
inline std::span<const uint64_t, kCmCounterCount> all_of(const CmStatus& status) {
  return std::span<const uint64_t, kCmCounterCount>(&status.channels, kCmCounterCount);
}

}  // namespace dapple::soft
