// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <algorithm>

#include "tools/perf/progress.hpp"
#include "tools/perf/workload.hpp"

namespace dapple::perf {
namespace {

constexpr uint64_t kMaxWarmUps = 100;

// Rounds that are not measured, which warm up pages and connections.
uint64_t warm_ups(const Parameters& parameters) {
  return std::min(parameters.iterations, kMaxWarmUps);
}

// A ping-pong over memory: the last byte of a message shows that the message has arrived. Messages are numbered over
// all sizes, so that no byte has the number before its message has arrived.
class Ball {
 public:
  explicit Ball(Side& side) : side_(side) {}

  void throw_it(uint64_t size) {
    Areas& areas = side_.areas;
    areas.region().memory()[areas.outbox() + size - 1] = number_;
    side_.connection.post(Operation::kWrite, areas.region().segment(areas.outbox(), size),
                          Areas::at(side_.peer, areas.inbox()));
  }

  void catch_it(uint64_t size) {
    const size_t place = side_.areas.inbox() + size - 1;
    const volatile unsigned char* byte = side_.areas.region().memory() + place;
    const bool syncs = side_.session.syncs();
    for (uint64_t spins = 0;; side_.connection.be_patient("the peer's RDMA Write", spins)) {
      if (syncs) side_.areas.region().around_peer_writes(place, 1);
      if (*byte == number_) break;
    }
    // Data that arrives with the byte must be read after it.
    if (!syncs) side_.areas.region().around_peer_writes(place, 1);
  }

  void next() { number_ = static_cast<unsigned char>(number_ % 255 + 1); }

 private:
  Side& side_;
  unsigned char number_ = 1;
};

void post_receive(Side& side) {
  side.connection.post_receive(side.areas.region().segment(side.areas.inbox(), side.parameters.size));
}

void send(Side& side, uint64_t size) {
  side.connection.post(Operation::kSend, side.areas.region().segment(side.areas.outbox(), size), {});
}

// One round of the client; the caller knows how many times the message travels in it.
void play(Side& side, Ball& ball, uint64_t size) {
  Connection& connection = side.connection;
  switch (side.parameters.operation) {
    case Operation::kWrite:
      ball.throw_it(size);
      ball.catch_it(size);
      ball.next();
      break;
    case Operation::kRead:
      connection.post(Operation::kRead, side.areas.region().segment(side.areas.outbox(), size),
                      Areas::at(side.peer, side.areas.target()));
      break;
    case Operation::kSend:
      send(side, size);
      (void)connection.await_receive();
      break;
  }
  if (side.parameters.operation == Operation::kRead) connection.await_request();
}

// The part of a round that is not measured: the completion of our own request, and the next receive.
void clear_up(Side& side) {
  if (side.parameters.operation != Operation::kRead) side.connection.await_request();
  if (side.parameters.operation == Operation::kSend) post_receive(side);
}

Result measure(Side& side, Ball& ball, uint64_t size) {
  const uint64_t warm = warm_ups(side.parameters);
  const uint64_t total = warm + side.parameters.iterations;
  // A round of Write or Send goes there and back; the latency is half of it.
  const double part = side.parameters.operation == Operation::kRead ? 1e6 : 0.5e6;
  std::vector<double> samples_us;
  samples_us.reserve(side.parameters.iterations);
  Progress progress(size, total);
  for (uint64_t i = 0; i < total; ++i) {
    const Clock::time_point begin = Clock::now();
    play(side, ball, size);
    const Clock::time_point end = Clock::now();
    if (i >= warm) samples_us.push_back(seconds_between(begin, end) * part);
    clear_up(side);
    progress.at(i + 1);
  }
  Result result{size, side.parameters.iterations, {}, {}};
  result.latency = latency_of(samples_us);
  return result;
}

}  // namespace

std::vector<Result> run_latency_client(Side& side) {
  std::vector<Result> results;
  Ball ball(side);
  for (const uint64_t size : side.parameters.sizes()) results.push_back(measure(side, ball, size));
  return results;
}

void run_latency_server(Side& side) {
  if (side.parameters.operation == Operation::kRead) return;
  Ball ball(side);
  const uint64_t rounds = warm_ups(side.parameters) + side.parameters.iterations;
  // The next message shows that the answer before it has arrived; the last answer is flushed if the client leaves
  // before the device learns of its arrival.
  bool answered = false;
  for (const uint64_t size : side.parameters.sizes()) {
    for (uint64_t i = 0; i < rounds; ++i) {
      if (side.parameters.operation == Operation::kWrite) {
        ball.catch_it(size);
        ball.throw_it(size);
        ball.next();
      } else {
        (void)side.connection.await_receive();
        post_receive(side);
        send(side, size);
      }
      if (answered) side.connection.await_request();
      answered = true;
    }
  }
}

}  // namespace dapple::perf
