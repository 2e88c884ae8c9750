// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One run: nodes, queue pairs and a network from a seed, in virtual time.
#pragma once

#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "tests/sim/memory.hpp"
#include "tests/sim/network.hpp"
#include "tests/sim/party.hpp"
#include "tests/sim/plan.hpp"
#include "tests/sim/workload.hpp"

namespace dapple::sim {

constexpr uint32_t kReceiveSize = 12 * 1024;
constexpr uint32_t kReceiveSegments = 4;  // at most

// Memory for the nodes, which each run uses again.
using Arena = std::vector<std::byte>;

class World final : public MemoryWatcher {
 public:
  World(uint64_t seed, WorldKind kind, Arena& arena, Referee& referee);

  void set_pcap(roce::test::PcapFile* pcap) { network_.pcap = pcap; }
  void run();

  void remote_written(uint32_t qpn, uint64_t address, std::span<const std::byte> bytes) override;
  void remote_read(uint32_t qpn, uint64_t address, std::span<const std::byte> bytes) override;
  void remote_atomic(uint32_t qpn, const AtomicAccess& access) override;
  void remote_flushed(uint32_t qpn, const roce::RemoteRange& range) override;
  void gathered(uint32_t qpn, std::span<const roce::Segment> segments) override;
  void scattered(uint32_t qpn) override;
  bool is_late(uint32_t qpn) override;

 private:
  struct Happening {
    roce::Time time = 0;
    uint64_t number = 0;  // at equal times, in the order of planning
    std::function<void()> act;
    bool operator<(const Happening& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void at(roce::Time time, std::function<void()> act);
  void make_nodes(Arena& arena);
  void make_pair(roce::QpType type);
  void make_datagrams();
  Party& make_party(roce::QpType type, Node& node, XrcDomain* domain = nullptr);
  Receives& receives_for(Party& party);
  void make_target(Party& party);
  // Extended connections.
  struct Place {
    Node* node = nullptr;
    std::unique_ptr<XrcDomain> domain;
  };
  void make_places();
  void make_extended();
  XrcQueue& add_queue(Place& place);
  void give_window(Party& receiver);
  void destroy_queue();
  void post_to(XrcDomain& domain);
  void connect(Party& a, Party& b);
  Statuses excuses(const Party& party) const;
  void plan_faults();
  void plan_work(Party& party);

  void pump(Party& party);
  void arrive(const Flight& flight);
  void drain(Party& party);
  void resume(Party& party);
  void recover(Party& party);
  void end_chaos();
  // From the end of the chaos on, applications post receives in time.
  void top_up(Party& party);
  void throw_into_error(Party& party);
  void reconnect(Party& party);
  // Runs the next event, planned or a deadline. False if there is none.
  bool step();
  void check_end();
  Party* party_of(uint32_t qpn);
  // The party whose requests the queue pair with this number executes.
  Stream* stream_to(uint32_t qpn);

  const uint64_t seed_;
  Random random_;
  Plan plan_;
  Referee& referee_;
  Network network_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<Receives>> own_receives_;
  std::vector<Place> places_;
  std::vector<std::unique_ptr<Party>> parties_;
  Workload workload_;
  std::priority_queue<Happening> happenings_;
  uint64_t last_number_ = 0;
  bool chaos_is_over_ = false;
};

}  // namespace dapple::sim
