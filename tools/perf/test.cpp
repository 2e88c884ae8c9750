// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <fmt/format.h>

#include "tools/perf/common/failure.hpp"
#include "tools/perf/pattern.hpp"
#include "tools/perf/progress.hpp"
#include "tools/perf/workload.hpp"

namespace dapple::perf {
namespace {

// The messages of a round, each with its own pattern.
enum Step : uint64_t { kSent, kAnswered, kWritten, kChanged, kSteps };

uint64_t seed_of(uint64_t size, uint64_t round, Step step) {
  return (size + round) * kSteps + step;
}

// An answer shows that the message before it has arrived, so a side waits for the completion of its Send only then. The
// server never waits for its last Send, which is flushed if the client leaves before the server's device learns of its
// arrival.
class Player {
 public:
  explicit Player(Side& side) : side_(side), memory_(side.areas.region().memory()) {}

  void send(uint64_t size, uint64_t seed) {
    Areas& areas = side_.areas;
    fill(memory_ + areas.outbox(), size, seed);
    side_.connection.post(Operation::kSend, areas.region().segment(areas.outbox(), size), {});
    sending_ = true;
  }

  // The next receive is posted before the peer can know that this one has completed.
  void receive(uint64_t size, uint64_t seed, const char* what) {
    Areas& areas = side_.areas;
    const uint64_t length = side_.connection.await_receive();
    if (length != size) throw Failure(fmt::format("{}: received {} bytes instead of {}", what, length, size));
    verify(memory_ + areas.inbox(), size, seed, what);
    side_.connection.post_receive(areas.region().segment(areas.inbox(), side_.parameters.size));
    if (sending_) side_.connection.await_request();
    sending_ = false;
  }

  // Moves data between our outbox and the peer's target.
  void transfer(Operation operation, uint64_t size) {
    Areas& areas = side_.areas;
    side_.connection.post(operation, areas.region().segment(areas.outbox(), size),
                          Areas::at(side_.peer, areas.target()));
    side_.connection.await_request();
  }

  unsigned char* outbox() { return memory_ + side_.areas.outbox(); }
  unsigned char* target() { return memory_ + side_.areas.target(); }

 private:
  Side& side_;
  unsigned char* memory_;
  bool sending_ = false;
};

constexpr uint64_t kNoteBytes = 1;

void client_round(Player& player, uint64_t size, uint64_t round) {
  player.send(size, seed_of(size, round, kSent));
  player.receive(size, seed_of(size, round, kAnswered), "the server's Send");
  fill(player.outbox(), size, seed_of(size, round, kWritten));
  player.transfer(Operation::kWrite, size);
  player.send(kNoteBytes, seed_of(size, round, kWritten));
  player.receive(kNoteBytes, seed_of(size, round, kChanged), "the server's note");
  player.transfer(Operation::kRead, size);
  verify(player.outbox(), size, seed_of(size, round, kChanged), "our RDMA Read");
}

void server_round(Player& player, Side& side, uint64_t size, uint64_t round) {
  Region& region = side.areas.region();
  const size_t target = side.areas.target();
  player.receive(size, seed_of(size, round, kSent), "the client's Send");
  // This CPU has written to the memory, and the client writes next.
  region.around_peer_writes(target, size);
  player.send(size, seed_of(size, round, kAnswered));
  player.receive(kNoteBytes, seed_of(size, round, kWritten), "the client's note");
  region.around_peer_writes(target, size);
  verify(player.target(), size, seed_of(size, round, kWritten), "the client's RDMA Write");
  fill(player.target(), size, seed_of(size, round, kChanged));
  region.before_peer_reads(target, size);
  player.send(kNoteBytes, seed_of(size, round, kChanged));
}

}  // namespace

std::vector<Result> run_test_client(Side& side) {
  std::vector<Result> results;
  Player player(side);
  for (const uint64_t size : side.parameters.sizes()) {
    Progress progress(size, side.parameters.iterations);
    for (uint64_t round = 0; round < side.parameters.iterations; ++round) {
      client_round(player, size, round);
      progress.at(round + 1);
    }
    results.push_back({size, side.parameters.iterations, {}, {}});
  }
  return results;
}

void run_test_server(Side& side) {
  Player player(side);
  for (const uint64_t size : side.parameters.sizes()) {
    for (uint64_t round = 0; round < side.parameters.iterations; ++round) server_round(player, side, size, round);
  }
}

}  // namespace dapple::perf
