// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/progress.hpp"
#include "tools/perf/workload.hpp"

namespace dapple::perf {
namespace {

constexpr uint64_t kNoteBytes = 1;

// A Send needs a posted receive, and on iWARP it completes before it arrives. So the server sends a note after each
// `depth` messages, as long as the client needs it, and one after the last message.
class Notes {
 public:
  explicit Notes(const Side& side)
      : side_(side),
        messages_(side.parameters.operation == Operation::kSend
                      ? side.parameters.iterations * side.parameters.sizes().size()
                      : 0) {}

  // Called by the client before it posts one more.
  void await_room() {
    if (messages_ == 0) return;
    if (posted_++ == heard_of_ + 2 * depth()) hear();
  }
  void await_last() {
    if (messages_ != 0) hear();
  }

  // For the server. The client leaves when it has the last note, which may be before the note's completion here.
  void serve() {
    for (uint64_t arrived = 1; arrived <= messages_; ++arrived) {
      (void)side_.connection.await_receive();
      side_.connection.post_receive(side_.areas.region().segment(side_.areas.inbox(), side_.parameters.size));
      const bool last = arrived == messages_;
      if (!last && (arrived % depth() != 0 || arrived + depth() >= messages_)) continue;
      side_.connection.post(Operation::kSend, side_.areas.region().segment(side_.areas.outbox(), kNoteBytes), {});
      if (!last) side_.connection.await_request();
    }
  }

 private:
  uint64_t depth() const { return side_.parameters.depth; }
  void hear() {
    (void)side_.connection.await_receive();
    side_.connection.post_receive(side_.areas.region().segment(side_.areas.inbox(), side_.parameters.size));
    heard_of_ += depth();
  }

  const Side& side_;
  const uint64_t messages_;
  uint64_t posted_ = 0;
  uint64_t heard_of_ = 0;
};

Result measure(Side& side, Notes& notes, uint64_t size) {
  const Parameters& parameters = side.parameters;
  // Reads arrive beside the source of writes; all messages of a kind use the same place.
  const DAT_LMR_TRIPLET local = side.areas.region().segment(side.areas.outbox(), size);
  const RemoteMemory remote = Areas::at(side.peer, side.areas.target());
  std::vector<double> completed_s;
  completed_s.reserve(parameters.iterations);
  Progress progress(size, parameters.iterations);
  uint64_t posted = 0;
  const Clock::time_point begin = Clock::now();
  while (completed_s.size() < parameters.iterations) {
    for (; posted < parameters.iterations && posted - completed_s.size() < parameters.depth; ++posted) {
      notes.await_room();
      side.connection.post(parameters.operation, local, remote);
    }
    side.connection.await_request();
    completed_s.push_back(seconds_between(begin, Clock::now()));
    progress.at(completed_s.size());
  }
  Result result{size, parameters.iterations, {}, {}};
  // Completions are reaped in bursts of up to a queue's length.
  result.bandwidth = bandwidth_of(completed_s, size, 2 * size_t{parameters.depth});
  return result;
}

}  // namespace

std::vector<Result> run_bandwidth_client(Side& side) {
  std::vector<Result> results;
  Notes notes(side);
  for (const uint64_t size : side.parameters.sizes()) results.push_back(measure(side, notes, size));
  notes.await_last();
  return results;
}

void run_bandwidth_server(Side& side) {
  Notes(side).serve();
}

}  // namespace dapple::perf
