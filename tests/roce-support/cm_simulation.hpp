// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Hosts that connect, accept, reject, disconnect and destroy at random over a network that loses, repeats, delays and
// reorders. One seed is one exact run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "tests/roce-support/cm_node.hpp"

namespace dapple::roce::cm::test {

class Simulation {
 public:
  Simulation(uint64_t seed, uint8_t hosts, unsigned connections, bool verbose);

  // Runs to the end. Empty, or the promise that was broken.
  std::string run();

  uint64_t trace_hash() const { return trace_; }
  // The number of ids that reached each state, for a test that requires all of them.
  const std::map<std::string, unsigned>& seen() const { return seen_; }

 private:
  enum class Phase : uint8_t {
    kRequested,  // requested by this side, or by the peer
    kAnswered,   // the passive side's accept
    kResponded,  // the active side has a REP
    kEstablished,
    kDisconnecting,
    kOver,  // time wait follows
    kLast,
    kEnded,  // ended by its own consumer
  };

  struct Track {
    bool active = false;
    bool datagram = false;
    Phase phase = Phase::kRequested;
    uint32_t tag = 0;  // the same at both ends of a connection
  };

  struct Step {
    Time at = 0;
    uint64_t order = 0;
    std::function<void()> act;
    bool operator>(const Step& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  struct Place {
    std::unique_ptr<Node> node;
    std::map<Id, Track> ids;
    Id listener = kNoId;
    Id datagram_listener = kNoId;
  };

  uint64_t random(uint64_t below);
  bool chance(unsigned percent) { return random(100) < percent; }
  void after(Time delay, std::function<void()> act);
  void fail(const std::string& problem);
  void note(Place& place, Id id, const char* text);

  void begin(size_t from, bool datagram);
  void drain(Place& place);
  void deliver(const Datagram& datagram);
  void look_at(Place& place, const SeenEvent& event);
  void check_order(const Track& track, const SeenEvent& event);
  void react(Place& place, const SeenEvent& event, Track& track);
  // Does it later, if the id still exists.
  void later(Place& place, Id id, Time within, std::function<void(Track&)> act);
  void end(Place& place, Id id, Status status);
  void run_until_quiet(Time limit);
  void check_agreement();

  uint64_t random_;
  bool verbose_;
  unsigned loss_;
  unsigned repetition_;
  bool faults_ = true;
  Time now_ = 1'000'000'000;
  Time blackout_begin_;
  Time blackout_end_;
  uint64_t order_ = 0;
  uint64_t trace_ = 0xCBF29CE484222325;
  uint32_t next_tag_ = 1;
  std::string problem_;
  std::vector<Place> places_;
  std::priority_queue<Step, std::vector<Step>, std::greater<>> steps_;
  std::map<std::string, unsigned> seen_;
};

}  // namespace dapple::roce::cm::test
