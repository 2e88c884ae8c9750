// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The shared memory about requests: this program's, and its view of the others'.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "provider/soft/check/races/race_pages.hpp"
#include "roce/packet/psn.hpp"

namespace dapple::soft::check {

struct ToldRequest {
  uint64_t stamp = 0;
  uint32_t first_psn = 0;
  uint32_t packets = 0;
  KnownRequests known;  // at the post
  // A time of this host that is not after the request's end: the stamp, or when the mark of another host has come.
  uint64_t since = 0;

  bool has(uint32_t psn) const {
    const int32_t place = roce::psn_distance(psn, first_psn);
    return place >= 0 && static_cast<uint32_t>(place) < packets;
  }
};

// A queue pair and its peer. Queue pairs of two hosts may have the same numbers, so the peer's lane must have the
// addresses of this connection, from the other end.
struct Connection {
  uint32_t qpn = 0;
  uint32_t peer = 0;
  Addresses addresses;
};

// Confined: the caller has a lock. A queue pair that finds its lane taken tells nothing.
class ToldRequests {
 public:
  // This program's slot. Without it, nothing is told, and nothing found.
  void open(int file, uint32_t slot);
  bool is_open() const { return own_ != nullptr; }
  // A child of fork() has its parent's memory, and tells nothing.
  void close() { own_ = nullptr; }

  // Maps the memory of the peer's program.
  void meet(uint32_t peer);
  // The queue pair has this peer from now on.
  void connect(const Connection& connection);
  // It has these addresses from now on.
  void locate(const Connection& connection);
  void disconnect(uint32_t qpn);
  // The request is posted. `version`: changes when `known` does.
  void tell(uint32_t qpn, uint64_t stamp, uint32_t first_psn, uint32_t packets, const KnownRequests& known,
            uint64_t version);
  // The answer to a Read or atomic of the peer goes out.
  void tell_answer(uint32_t qpn, uint32_t psn, const KnownRequests& known);
  // A request of the peer of this queue pair races.
  void tell_race(uint32_t qpn, const RaceRow& race);

  // None if the peer tells nothing of it: it is on another host, not checked, or the request is too old.
  std::optional<ToldRequest> request(const Connection& connection, uint32_t psn) const;
  // The request of this queue pair with this PSN, as it was told.
  std::optional<ToldRequest> own_request(uint32_t qpn, uint32_t psn) const;
  // What the answer to this atomic of the peer told.
  std::optional<KnownRequests> own_answer(uint32_t qpn, uint32_t psn) const;
  // Tells whether the peer is a program of this host that shares its memory.
  bool has_peer(const Connection& connection) const { return peers_lane(connection) != nullptr; }
  // What the peer knew when it answered the request with these PSNs.
  std::optional<KnownRequests> answer(const Connection& connection, uint32_t first_psn, uint32_t packets) const;
  // The races of this queue pair's requests that the peer has told since the last call; `seen` is the caller's for each
  // queue pair, and 0 at first.
  std::vector<RaceRow> races(const Connection& connection, uint32_t& seen) const;
  // The process of a queue pair; 0: unknown.
  int process_of(uint32_t qpn) const;

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  Lane* lane_of(uint32_t qpn) const;
  const Lane* peers_lane(const Connection& connection) const;
  const RacePages* pages_of(uint32_t qpn) const;
  static std::optional<ToldRequest> find_request(const RacePages& pages, const Lane& lane, uint32_t psn);
  static std::optional<KnownRequests> find_answer(const RacePages& pages, const Lane& lane, const ToldRequest& request);
  static std::optional<KnownRequests> find(const SharedRow<KnownRow> (&rows)[kKnownRows], uint64_t number);

  int file_ = -1;
  RacePages* own_ = nullptr;
  uint64_t version_ = 0;                        // of the last row
  uint64_t known_ = 0;                          // its number
  uint64_t answers_ = 0;                        // the number of the last answer
  std::unique_ptr<const RacePages*[]> others_;  // by slot; mapped as long as the process lives
};

}  // namespace dapple::soft::check
