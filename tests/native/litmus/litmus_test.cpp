// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Runs litmus tests under DAPPLE_FAULTS=order=weak, which the environment has (CMakeLists.txt). Each outcome that the
// model allows comes after some rounds of a named program, and none comes that it forbids. Of random programs nothing
// forbidden may come.
//
//   test-litmus                  the named programs
//   test-litmus random COUNT     this number of random programs
//   test-litmus PROGRAM ROUNDS   one program; prints its outcomes
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "tests/native/kills/stage.hpp"
#include "tests/native/litmus/node.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/litmus/model.hpp"

using namespace dapple::litmus;
using dapple::tests::failed;
using dapple::tests::failures;

namespace {

struct Named {
  const char* name;
  const char* text;
};

// The usual shapes of memory models, and those of docs/faults.md.
constexpr Named kNamed[] = {
    {"bytes of a Write are fetched late", "z <- x; x = 5"},
    {"bytes of a Write after its completion", "z <- x; poll; x = 5"},
    {"a Read's result comes late", "x <- z; load x"},
    {"a Read's result after its completion", "x <- z; poll; load x"},
    {"Read, Write of the same word", "x <- z; z <- y"},
    {"Read, fenced Write of the same word", "x <- z; fence z <- y"},
    {"Read, Write of its result", "x <- z; w <- x"},
    {"Read, fenced Write of its result", "x <- z; fence w <- x"},
    {"Write, Read of the same word", "z <- x; y <- z"},
    {"Write, Write of the same word", "z <- x; z <- y"},
    {"message passing: two Writes", "z <- x; w <- y || await w; load z"},
    {"message passing: Writes of two queue pairs", "z <- x; w <- y @1 || await w; load z"},
    {"message passing: a completion in between", "z <- x; poll; w <- y @1 || await w; load z"},
    {"message passing: a Read in between", "z <- x; y <- z; poll; poll; w <- x @1 || await w; load z"},
    {"message passing: two Reads", "x <- w; y <- z || z = 5; w = 6"},
    {"message passing: Read, fenced Read", "x <- w; fence y <- z || z = 5; w = 6"},
    {"message passing: Read, completion, Read", "x <- w; poll; y <- z || z = 5; w = 6"},
    {"store buffering", "z <- x; load y || y <- w; load z"},
    {"store buffering: completions", "z <- x; poll; load y || y <- w; poll; load z"},
    {"store buffering: Reads", "z <- x; x <- w; poll; poll; load y || y <- w; w <- x; poll; poll; load z"},
    {"load buffering", "x <- z; w <- y || await w; z = 5"},
    {"load buffering: fence", "x <- z; fence w <- y || await w; z = 5"},
    {"two Writes against two stores", "z <- x; w <- y || w = 7; z = 8"},
    {"a Read against two stores", "x <- z; y <- w || w = 7; z = 8"},
    {"FetchAdd against a store", "x <- z + 32; poll || z = 5"},
    {"FetchAdd against a load and a store", "x <- z + 32 || load z; z = 5; load z"},
    {"FetchAdd against a Write of another queue pair", "x <- z + 32; z <- y @1"},
    {"message passing: a completed FetchAdd", "x <- z + 32; poll; w <- y @1 || await w; load z"},
    {"message passing: a FetchAdd of the same queue pair", "x <- z + 32; w <- y || await w; load z"},
    {"message passing: FetchAdds of two queue pairs", "x <- z + 32; poll; y <- w + 32 @1 || await w; load z"},
    {"two FetchAdds", "x <- z + 32; y <- z + 64"},
    {"FetchAdds of two queue pairs", "x <- z + 32; y <- z + 64 @1"},
    {"Write, FetchAdd", "z <- x; y <- z + 32"},
    {"FetchAdd, Write", "x <- z + 32; z <- y"},
    {"FetchAdd, Read", "x <- z + 32; y <- z"},
    {"Read, FetchAdd", "x <- z; y <- z + 32"},
    {"Read, fenced FetchAdd", "x <- z; fence y <- z + 32"},
};

// A busy machine stops the programs at the wrong moments in most rounds.
constexpr int kMaxRounds = 30000;
constexpr int kMinRounds = 100;
constexpr int kRandomRounds = 12;

Stage* stage;

// What a program brought.
struct Seen {
  std::map<Outcome, int> counts;
  int rounds = 0;
};

// Runs a program until all that is allowed has come, or for `max` rounds. Reports outcomes that are forbidden. The
// other node decides alike, because it sees the same outcomes.
bool run(Node& node, const Program& program, const std::set<Outcome>& allowed, int min, int max, Seen& seen) {
  while (seen.rounds < max && (seen.rounds < min || seen.counts.size() < allowed.size())) {
    Outcome outcome;
    if (!node.run(program, outcome)) return false;
    seen.rounds++;
    seen.counts[outcome]++;
    if (allowed.contains(outcome)) continue;
    failed(text_of(program).c_str(), ("forbidden: " + text_of(outcome, program)).c_str());
    return false;
  }
  return true;
}

bool run_named(Node& node, bool tells) {
  for (const auto& [name, text] : kNamed) {
    const Program program = parsed(text);
    const std::set<Outcome> allowed = allowed_outcomes(program);
    Seen seen;
    if (!run(node, program, allowed, kMinRounds, kMaxRounds, seen)) return false;
    if (!tells) continue;
    printf("%5d rounds, %2zu of %2zu outcomes, %2zu of them strong: %-50s %s\n", seen.rounds, seen.counts.size(),
           allowed.size(), strong_outcomes(program).size(), name, text);
    for (const Outcome& outcome : allowed) {
      if (!seen.counts.contains(outcome)) failed(text, ("never seen: " + text_of(outcome, program)).c_str());
    }
    fflush(stdout);
  }
  return true;
}

bool run_random(Node& node, bool tells, uint64_t count) {
  size_t allowed_count = 0, strong_count = 0, seen_count = 0;
  for (uint64_t seed = 0; seed < count; seed++) {
    const Program program = random_program(seed);
    const std::set<Outcome> allowed = allowed_outcomes(program);
    Seen seen;
    if (!run(node, program, allowed, kRandomRounds, kRandomRounds, seen)) return false;
    allowed_count += allowed.size();
    seen_count += seen.counts.size();
    if (tells) strong_count += strong_outcomes(program).size();
  }
  if (tells) {
    printf(
        "%llu random programs, %d rounds each: %zu of %zu allowed outcomes seen; %zu of the allowed ones are strong\n",
        static_cast<unsigned long long>(count), kRandomRounds, seen_count, allowed_count, strong_count);
  }
  return true;
}

bool run_one(Node& node, bool tells, const char* text, int rounds) {
  const Program program = parsed(text);
  const std::set<Outcome> allowed = allowed_outcomes(program), strong = strong_outcomes(program);
  Seen seen;
  if (!run(node, program, allowed, rounds, rounds, seen)) return false;
  if (!tells) return true;
  for (const Outcome& outcome : allowed) {
    printf("%6d  %s%s\n", seen.counts[outcome], text_of(outcome, program).c_str(),
           strong.contains(outcome) ? "" : "  (weak)");
  }
  return true;
}

int be_node(int number, int argc, char** argv) {
  Node node(*stage, number);
  if (!node.open()) return 1;
  const bool tells = number == 0;
  bool ended = false;
  if (argc != 3) {
    ended = run_named(node, tells);
  } else if (strcmp(argv[1], "random") == 0) {
    ended = run_random(node, tells, strtoull(argv[2], nullptr, 10));
  } else {
    ended = run_one(node, tells, argv[1], atoi(argv[2]));
  }
  if (!ended) stage->is_over = true;
  fflush(stdout);
  return ended && failures() == 0 ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __SANITIZE_THREAD__
  dapple::tests::skip_program("the programs change memory too early on purpose, which ThreadSanitizer reports");
#endif
  if (argc != 1 && argc != 3) {
    fprintf(stderr, "usage: test-litmus [random COUNT | PROGRAM ROUNDS]\n");
    return 2;
  }
  // A malformed program ends here, before there are nodes.
  if (argc == 3 && strcmp(argv[1], "random") != 0) parsed(argv[1]);
  stage = dapple::tests::prepare_stage<Stage>();
  pid_t nodes[kNodes];
  for (int i = 0; i < kNodes; i++) nodes[i] = dapple::tests::start_process([&] { return be_node(i, argc, argv); });
  for (const pid_t node : nodes) {
    if (!dapple::tests::ends_with(node, 0)) failed("a node");
  }
  return failures() == 0 ? 0 : 1;
}
