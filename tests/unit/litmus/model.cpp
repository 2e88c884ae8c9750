// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/litmus/model.hpp"

#include <algorithm>
#include <compare>
#include <utility>
#include <vector>

namespace dapple::litmus {
namespace {

// A request on its way.
enum class Stage : uint8_t {
  kPutPosted,
  kPutFetched,
  kGetPosted,
  kAddPosted,
  kAnswered,  // a Read or a FetchAdd has its result
  kSent,      // a Write; its acknowledgement is on its way
  kFence,
};

struct Request {
  Stage stage;
  uint8_t local = 0, remote = 0, value = 0;
  uint8_t added = 0;

  bool is_read() const { return stage == Stage::kGetPosted || stage == Stage::kAddPosted || stage == Stage::kAnswered; }
  auto operator<=>(const Request&) const = default;
};

struct Effect {
  bool is_completion = false;
  uint8_t word = 0, value = 0;
  bool is_atomic = false;
  auto operator<=>(const Effect&) const = default;
};

struct QueuePair {
  std::vector<Request> pipe;    // oldest first
  std::vector<Effect> arrived;  // at the other node, and not visible
  std::vector<Effect> returned;
  auto operator<=>(const QueuePair&) const = default;

  bool is_returned() const {
    return std::all_of(returned.begin(), returned.end(), [](const Effect& effect) { return effect.is_completion; });
  }
  bool is_idle() const { return pipe.empty() && arrived.empty() && is_returned(); }
};

struct State {
  Outcome seen;  // so far
  std::array<uint8_t, kNodes> next = {};
  std::array<uint8_t, kNodes> loaded = {};
  std::array<std::array<QueuePair, kPairs>, kNodes> pairs;
  auto operator<=>(const State&) const = default;
};

class Search {
 public:
  Search(const Program& program, bool is_strong) : program_(program), is_strong_(is_strong) {}

  std::set<Outcome> run() {
    State first;
    for (int word = 0; word < kWords; word++) first.seen.words[word] = first_value(word);
    for (int node = 0; node < kNodes; node++) first.loaded[node] = static_cast<uint8_t>(program_.loads_before(node));
    reach(first);
    while (!open_.empty()) {
      const State state = std::move(open_.back());
      open_.pop_back();
      explore(state);
    }
    return std::move(outcomes_);
  }

 private:
  void reach(State state) {
    if (known_.insert(state).second) open_.push_back(std::move(state));
  }

  void explore(const State& state) {
    bool ended = true, is_idle = true;
    for (int node = 0; node < kNodes; node++) {
      for (int pair = 0; pair < kPairs; pair++) {
        if (state.pairs[node][pair].is_idle()) continue;
        is_idle = ended = false;
        advance(state, node, pair);
      }
    }
    for (int node = 0; node < kNodes; node++) {
      if (state.next[node] == program_.threads[node].size()) continue;
      ended = false;
      if (!is_strong_ || is_idle) execute(state, node);
    }
    if (ended) outcomes_.insert(state.seen);
  }

  void execute(const State& from, int node) {
    const Step& step = program_.threads[node][from.next[node]];
    State to = from;
    to.next[node]++;
    QueuePair& pair = to.pairs[node][step.pair];
    if (step.is_request() && step.fenced) pair.pipe.push_back({Stage::kFence});
    switch (step.kind) {
      case Kind::kStore:
        to.seen.words[step.local] = step.value;
        break;
      case Kind::kLoad:
        to.seen.loads[to.loaded[node]++] = from.seen.words[step.local];
        break;
      case Kind::kAwait:
        if (from.seen.words[step.local] == first_value(step.local)) return;
        break;
      case Kind::kPut:
        pair.pipe.push_back({Stage::kPutPosted, step.local, step.remote});
        break;
      case Kind::kGet:
        pair.pipe.push_back({Stage::kGetPosted, step.local, step.remote});
        break;
      case Kind::kAdd:
        pair.pipe.push_back({Stage::kAddPosted, step.local, step.remote, 0, step.value});
        break;
      case Kind::kPoll:
        if (pair.returned.empty() || !pair.returned.front().is_completion) return;
        pair.returned.erase(pair.returned.begin());
        break;
    }
    reach(std::move(to));
  }

  // Whether a FetchAdd of this node is between its read and its write.
  static bool is_adding(const State& state, int node) {
    return std::any_of(state.pairs[node].begin(), state.pairs[node].end(), [](const QueuePair& pair) {
      return std::any_of(pair.arrived.begin(), pair.arrived.end(),
                         [](const Effect& effect) { return effect.is_atomic; });
    });
  }

  void advance(const State& from, int node, int number) {
    const QueuePair& pair = from.pairs[node][number];
    for (size_t i = 0; i < pair.pipe.size(); i++) advance(from, node, number, i);
    if (!pair.arrived.empty()) {
      State to = from;
      std::vector<Effect>& arrived = to.pairs[node][number].arrived;
      to.seen.words[arrived.front().word] = arrived.front().value;
      arrived.erase(arrived.begin());
      reach(std::move(to));
    }
    // Completions wait for the program without holding up what follows.
    const auto first = std::find_if(pair.returned.begin(), pair.returned.end(),
                                    [](const Effect& effect) { return !effect.is_completion; });
    if (first != pair.returned.end()) {
      State to = from;
      std::vector<Effect>& returned = to.pairs[node][number].returned;
      to.seen.words[first->word] = first->value;
      returned.erase(returned.begin() + (first - pair.returned.begin()));
      reach(std::move(to));
    }
  }

  void advance(const State& from, int node, int number, size_t i) {
    const std::vector<Request>& pipe = from.pairs[node][number].pipe;
    const auto older_are = [&](auto... stages) {
      return std::all_of(pipe.begin(), pipe.begin() + static_cast<std::ptrdiff_t>(i),
                         [&](const Request& older) { return ((older.stage == stages) || ...); });
    };
    State to = from;
    QueuePair& pair = to.pairs[node][number];
    Request& request = pair.pipe[i];
    switch (request.stage) {
      case Stage::kPutPosted:
        if (!older_are(Stage::kPutFetched, Stage::kSent, Stage::kGetPosted, Stage::kAddPosted, Stage::kAnswered)) {
          return;
        }
        if (!pair.is_returned()) return;
        request.value = from.seen.words[request.local];
        request.stage = Stage::kPutFetched;
        break;
      case Stage::kPutFetched:
        if (!older_are(Stage::kSent, Stage::kGetPosted, Stage::kAnswered)) return;
        pair.arrived.push_back({false, request.remote, request.value});
        request.stage = Stage::kSent;
        break;
      case Stage::kGetPosted:
        if (!older_are(Stage::kSent, Stage::kGetPosted, Stage::kAnswered) || !pair.arrived.empty()) return;
        request.value = from.seen.words[request.remote];
        request.stage = Stage::kAnswered;
        break;
      case Stage::kAddPosted:
        if (!older_are(Stage::kSent, Stage::kGetPosted, Stage::kAnswered) || !pair.arrived.empty()) return;
        if (is_adding(from, node)) return;
        request.value = from.seen.words[request.remote];
        pair.arrived.push_back({false, request.remote, static_cast<uint8_t>(request.value + request.added), true});
        request.stage = Stage::kAnswered;
        break;
      case Stage::kAnswered:
        if (i != 0) return;
        pair.returned.push_back({false, request.local, request.value});
        pair.returned.push_back({true});
        pair.pipe.erase(pair.pipe.begin());
        break;
      case Stage::kSent:
        if (i != 0) return;
        pair.returned.push_back({true});
        pair.pipe.erase(pair.pipe.begin());
        break;
      case Stage::kFence:
        for (size_t older = 0; older < i; older++) {
          if (pipe[older].is_read() || pipe[older].stage == Stage::kFence) return;
        }
        pair.pipe.erase(pair.pipe.begin() + static_cast<std::ptrdiff_t>(i));
        break;
    }
    reach(std::move(to));
  }

  const Program& program_;
  const bool is_strong_;
  std::set<State> known_;
  std::vector<State> open_;
  std::set<Outcome> outcomes_;
};

}  // namespace

std::set<Outcome> allowed_outcomes(const Program& program) {
  return Search(program, false).run();
}

std::set<Outcome> strong_outcomes(const Program& program) {
  return Search(program, true).run();
}

}  // namespace dapple::litmus
