// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/litmus/model.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace dapple::litmus {
namespace {

// A list that holds its items itself, so a state is one block of bytes. The room behind the last item is zero.
template <typename T, size_t kMax>
class List {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  void push_back(const T& item) {
    assert(size_ < kMax);
    items_[size_++] = item;
  }
  void erase(size_t at) {
    std::copy(items_ + at + 1, items_ + size_, items_ + at);
    items_[--size_] = T();
  }

 private:
  uint8_t size_ = 0;
  T items_[kMax] = {};
};

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
  Stage stage = Stage::kPutPosted;
  uint8_t local = 0, remote = 0, value = 0;
  uint8_t added = 0;

  bool is_read() const { return stage == Stage::kGetPosted || stage == Stage::kAddPosted || stage == Stage::kAnswered; }
};

struct Effect {
  bool is_completion = false;
  uint8_t word = 0, value = 0;
  bool is_atomic = false;
};

struct QueuePair {
  List<Request, 2 * kMaxSteps> pipe;  // oldest first; each request may have a fence
  List<Effect, kMaxSteps> arrived;    // at the other node, and not visible
  List<Effect, 2 * kMaxSteps> returned;

  bool is_returned() const {
    return std::all_of(returned.begin(), returned.end(), [](const Effect& effect) { return effect.is_completion; });
  }
  bool is_idle() const { return pipe.empty() && arrived.empty() && is_returned(); }
};

struct State {
  Outcome seen;  // so far
  std::array<uint8_t, kNodes> next = {};
  std::array<uint8_t, kNodes> loaded = {};
  QueuePair pairs[kNodes][kPairs];

  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
  bool operator==(const State& other) const { return bytes() == other.bytes(); }
};
static_assert(std::has_unique_object_representations_v<State>);

struct Hash {
  size_t operator()(const State& state) const { return std::hash<std::string_view>()(state.bytes()); }
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
      const State& state = *open_.back();
      open_.pop_back();
      explore(state);
    }
    return std::move(outcomes_);
  }

 private:
  void reach(const State& state) {
    const auto [known, is_new] = known_.insert(state);
    if (is_new) open_.push_back(&*known);
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
        if (pair.returned.empty() || !pair.returned[0].is_completion) return;
        pair.returned.erase(0);
        break;
    }
    reach(to);
  }

  // Whether a FetchAdd of this node is between its read and its write.
  static bool is_adding(const State& state, int node) {
    return std::any_of(std::begin(state.pairs[node]), std::end(state.pairs[node]), [](const QueuePair& pair) {
      return std::any_of(pair.arrived.begin(), pair.arrived.end(),
                         [](const Effect& effect) { return effect.is_atomic; });
    });
  }

  void advance(const State& from, int node, int number) {
    const QueuePair& pair = from.pairs[node][number];
    for (size_t i = 0; i < pair.pipe.size(); i++) advance(from, node, number, i);
    if (!pair.arrived.empty()) {
      State to = from;
      auto& arrived = to.pairs[node][number].arrived;
      to.seen.words[arrived[0].word] = arrived[0].value;
      arrived.erase(0);
      reach(to);
    }
    // Completions wait for the program without holding up what follows.
    const auto first = std::find_if(pair.returned.begin(), pair.returned.end(),
                                    [](const Effect& effect) { return !effect.is_completion; });
    if (first != pair.returned.end()) {
      State to = from;
      to.seen.words[first->word] = first->value;
      to.pairs[node][number].returned.erase(static_cast<size_t>(first - pair.returned.begin()));
      reach(to);
    }
  }

  void advance(const State& from, int node, int number, size_t i) {
    const auto& pipe = from.pairs[node][number].pipe;
    const auto older_are = [&](auto... stages) {
      return std::all_of(pipe.begin(), pipe.begin() + i,
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
        pair.pipe.erase(0);
        break;
      case Stage::kSent:
        if (i != 0) return;
        pair.returned.push_back({true});
        pair.pipe.erase(0);
        break;
      case Stage::kFence:
        for (size_t older = 0; older < i; older++) {
          if (pipe[older].is_read() || pipe[older].stage == Stage::kFence) return;
        }
        pair.pipe.erase(i);
        break;
    }
    reach(to);
  }

  const Program& program_;
  const bool is_strong_;
  std::unordered_set<State, Hash> known_;
  std::vector<const State*> open_;  // of these
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
