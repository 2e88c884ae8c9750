// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/litmus/program.hpp"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <random>

namespace dapple::litmus {
namespace {

constexpr std::string_view kNames = "xyzw";
static_assert(kNames.size() == kWords);

constexpr int node_of(int word) {
  return word / kWordsOfNode;
}

std::string name_of(uint8_t word) {
  return std::string(1, kNames[word]);
}

std::string text_of(const Step& step) {
  std::string text = step.fenced ? "fence " : "";
  switch (step.kind) {
    case Kind::kStore:
      text += name_of(step.local) + " = " + std::to_string(step.value);
      break;
    case Kind::kLoad:
      text += "load " + name_of(step.local);
      break;
    case Kind::kAwait:
      text += "await " + name_of(step.local);
      break;
    case Kind::kPut:
      text += name_of(step.remote) + " <- " + name_of(step.local);
      break;
    case Kind::kGet:
      text += name_of(step.local) + " <- " + name_of(step.remote);
      break;
    case Kind::kAdd:
      text += name_of(step.local) + " <- " + name_of(step.remote) + " + " + std::to_string(step.value);
      break;
    case Kind::kPoll:
      text += "poll";
      break;
  }
  return step.pair == 0 ? text : text + " @1";
}

// Takes a program's text apart.
class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  Program run() {
    Program program;
    for (int node = 0; node < kNodes; node++) {
      do {
        skip_blanks();
        if (rest_.empty() || rest_.starts_with("||")) break;
        program.threads[node].push_back(step(node));
      } while (take(";"));
      if (node + 1 < kNodes && !take("||")) break;
    }
    skip_blanks();
    require(rest_.empty());
    require(program.loads_before(kNodes) <= kMaxLoads);
    for (const std::vector<Step>& thread : program.threads) {
      require(thread.size() <= kMaxSteps);
      int unpolled[kPairs] = {};
      for (const Step& step : thread) {
        if (step.is_request()) unpolled[step.pair]++;
        if (step.kind == Kind::kPoll) require(unpolled[step.pair]-- > 0);
      }
    }
    return program;
  }

 private:
  void require(bool condition) const {
    if (condition) return;
    fprintf(stderr, "litmus: malformed near \"%.*s\": %.*s\n", static_cast<int>(rest_.size()), rest_.data(),
            static_cast<int>(whole_.size()), whole_.data());
    exit(2);
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  bool take(std::string_view token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  uint8_t number() {
    skip_blanks();
    uint8_t value = 0;
    const std::from_chars_result result = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    require(result.ec == std::errc());
    rest_.remove_prefix(static_cast<size_t>(result.ptr - rest_.data()));
    return value;
  }

  uint8_t word() {
    skip_blanks();
    const size_t found = rest_.empty() ? std::string_view::npos : kNames.find(rest_.front());
    require(found != std::string_view::npos);
    rest_.remove_prefix(1);
    return static_cast<uint8_t>(found);
  }

  Step step(int node) {
    Step made;
    made.fenced = take("fence");
    if (take("poll")) {
      made.kind = Kind::kPoll;
    } else if (take("load")) {
      made.kind = Kind::kLoad;
      made.local = word();
    } else if (take("await")) {
      made.kind = Kind::kAwait;
      made.local = word();
    } else {
      const uint8_t left = word();
      if (take("=")) {
        made.kind = Kind::kStore;
        made.local = left;
        made.value = number();
      } else {
        require(take("<-"));
        const uint8_t right = word();
        require(node_of(left) != node_of(right));
        made.kind = node_of(left) == node ? Kind::kGet : Kind::kPut;
        made.local = made.kind == Kind::kGet ? left : right;
        made.remote = made.kind == Kind::kGet ? right : left;
        if (take("+")) {
          require(made.kind == Kind::kGet);
          made.kind = Kind::kAdd;
          made.value = number();
        }
      }
    }
    require(made.kind == Kind::kPoll || node_of(made.local) == node);
    require(!made.fenced || made.is_request());
    if (take("@1")) made.pair = 1;
    return made;
  }

  const std::string_view whole_;
  std::string_view rest_;
};

}  // namespace

size_t Program::loads_before(int node) const {
  size_t count = 0;
  for (int before = 0; before < node; before++) {
    count += static_cast<size_t>(std::count_if(threads[before].begin(), threads[before].end(),
                                               [](const Step& step) { return step.kind == Kind::kLoad; }));
  }
  return count;
}

std::string text_of(const Program& program) {
  std::string text;
  for (int node = 0; node < kNodes; node++) {
    if (node > 0) text += " || ";
    const char* between = "";
    for (const Step& step : program.threads[node]) {
      text += between + text_of(step);
      between = "; ";
    }
  }
  return text;
}

Program parsed(std::string_view text) {
  return Parser(text).run();
}

Program random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](unsigned limit) { return static_cast<uint8_t>(random() % limit); };
  for (;;) {
    Program program;
    uint8_t stored = kWords;
    bool has_request = false;
    for (int node = 0; node < kNodes; node++) {
      const int steps = below(5);
      int unpolled[kPairs] = {};
      for (int i = 0; i < steps; i++) {
        Step step;
        step.kind = static_cast<Kind>(below(6));
        step.local = static_cast<uint8_t>(node * kWordsOfNode + below(kWordsOfNode));
        step.remote = static_cast<uint8_t>((1 - node) * kWordsOfNode + below(kWordsOfNode));
        step.pair = below(4) == 0 ? 1 : 0;
        if (step.kind == Kind::kStore) step.value = ++stored;
        if (step.kind == Kind::kAdd) step.value = static_cast<uint8_t>(16 << below(3));
        if (!step.is_request() && step.kind != Kind::kPoll) step.pair = 0;
        if (step.kind == Kind::kPoll && unpolled[step.pair]-- == 0) {
          unpolled[step.pair] = 0;
          continue;
        }
        if (step.is_request()) {
          unpolled[step.pair]++;
          step.fenced = below(4) == 0;
          has_request = true;
        }
        program.threads[node].push_back(step);
      }
    }
    if (has_request && program.loads_before(kNodes) <= kMaxLoads) return program;
  }
}

std::string text_of(const Outcome& outcome, const Program& program) {
  std::string text;
  for (uint8_t word = 0; word < kWords; word++) {
    text += (word == 0 ? "" : " ") + name_of(word) + "=" + std::to_string(outcome.words[word]);
  }
  const size_t loads = program.loads_before(kNodes);
  if (loads > 0) text += " loads";
  for (size_t i = 0; i < loads; i++) text += " " + std::to_string(outcome.loads[i]);
  return text;
}

}  // namespace dapple::litmus
