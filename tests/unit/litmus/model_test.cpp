// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The model itself: an outcome of each program, which is possible or impossible on RDMA hardware.
#include <algorithm>

#include "tests/unit/litmus/model.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::litmus;

namespace {

enum Word { x, y, z, w };

struct Verdict {
  bool possible;
  const char* program;
  bool (*outcome)(const Outcome& o);
};

constexpr Verdict kVerdicts[] = {
    // The bytes of a Write are fetched late, but before its completion.
    {true, "z <- x; x = 5", [](const Outcome& o) { return o.words[z] == 5; }},
    {false, "z <- x; poll; x = 5", [](const Outcome& o) { return o.words[z] == 5; }},
    {false, "x = 5; z <- x", [](const Outcome& o) { return o.words[z] != 5; }},
    // A Read's result comes late, but before its completion.
    {true, "x <- z; load x", [](const Outcome& o) { return o.loads[0] == 1; }},
    {false, "x <- z; poll; load x", [](const Outcome& o) { return o.loads[0] == 1; }},
    // Writes of one queue pair have an order, those of two have none.
    {false, "z <- x; z <- y", [](const Outcome& o) { return o.words[z] == 1; }},
    {true, "z <- x; z <- y @1", [](const Outcome& o) { return o.words[z] == 1; }},
    {false, "z <- x; w <- y || load w; load z", [](const Outcome& o) { return o.loads[0] == 2 && o.loads[1] == 3; }},
    {true, "z <- x; w <- y @1 || load w; load z", [](const Outcome& o) { return o.loads[0] == 2 && o.loads[1] == 3; }},
    // A completed Write is not yet visible; a Read of its queue pair makes it so.
    {true, "z <- x; poll; w <- y @1 || load w; load z",
     [](const Outcome& o) { return o.loads[0] == 2 && o.loads[1] == 3; }},
    {false, "z <- x; y <- z; poll; poll; w <- x @1 || load w; load z",
     [](const Outcome& o) { return o.loads[0] == 1 && o.loads[1] == 3; }},
    // A Read sees the Writes before it, and may see those after it if they have no fence.
    {false, "z <- x; y <- z", [](const Outcome& o) { return o.words[y] != 1; }},
    {true, "x <- z; z <- y", [](const Outcome& o) { return o.words[x] == 2; }},
    {false, "x <- z; fence z <- y", [](const Outcome& o) { return o.words[x] == 2; }},
    {true, "x <- z; w <- x", [](const Outcome& o) { return o.words[w] == 1; }},
    {false, "x <- z; fence w <- x", [](const Outcome& o) { return o.words[w] == 1; }},
    // A fence waits for Reads, not for Writes.
    {true, "z <- x; fence w <- y; y = 5; x = 6 ", [](const Outcome& o) { return o.words[z] == 6 && o.words[w] == 5; }},
    // Two Reads have no order.
    {true, "x <- w; y <- z || z = 5; w = 6", [](const Outcome& o) { return o.words[x] == 6 && o.words[y] == 3; }},
    {false, "x <- w; fence y <- z || z = 5; w = 6",
     [](const Outcome& o) { return o.words[x] == 6 && o.words[y] == 3; }},
    // Store buffering.
    {true, "z <- x; poll; load y || y <- w; poll; load z",
     [](const Outcome& o) { return o.loads[0] == 2 && o.loads[1] == 3; }},
    {false, "z <- x; x <- w; poll; poll; load y || y <- w; w <- x; poll; poll; load z",
     [](const Outcome& o) { return o.loads[0] == 2 && o.loads[1] == 3; }},
    // Load buffering.
    {true, "x <- z; w <- y || load w; z = 5", [](const Outcome& o) { return o.loads[0] == 2 && o.words[x] == 5; }},
    {false, "x <- z; fence w <- y || load w; z = 5",
     [](const Outcome& o) { return o.loads[0] == 2 && o.words[x] == 5; }},
    // An atomic is atomic with atomics only.
    {true, "x <- z + 32 || z = 5", [](const Outcome& o) { return o.words[x] == 3 && o.words[z] == 35; }},
    {false, "x <- z + 32; y <- z + 64 @1", [](const Outcome& o) { return o.words[z] != 99; }},
    {true, "x <- z + 32; z <- y @1", [](const Outcome& o) { return o.words[x] == 3 && o.words[z] == 35; }},
    {false, "x <- z + 32; z <- y", [](const Outcome& o) { return o.words[z] != 2; }},
};

void possible_outcomes_are_found_and_impossible_ones_are_not(void**) {
  for (const Verdict& verdict : kVerdicts) {
    const std::set<Outcome> allowed = allowed_outcomes(parsed(verdict.program));
    if (std::any_of(allowed.begin(), allowed.end(), verdict.outcome) != verdict.possible) {
      print_message("%s: the outcome is %s\n", verdict.program, verdict.possible ? "impossible" : "possible");
      fail();
    }
  }
}

// Whatever happens if each request takes effect during its post may happen.
void strong_outcomes_are_allowed(void**) {
  for (uint64_t seed = 0; seed < 60; seed++) {
    const Program program = random_program(seed);
    const std::set<Outcome> allowed = allowed_outcomes(program), strong = strong_outcomes(program);
    assert_true(!strong.empty() && std::includes(allowed.begin(), allowed.end(), strong.begin(), strong.end()));
  }
}

void a_text_is_read_as_it_is_written(void**) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    const std::string text = text_of(random_program(seed));
    assert_string_equal(text_of(parsed(text)).c_str(), text.c_str());
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(possible_outcomes_are_found_and_impossible_ones_are_not),
      cmocka_unit_test(strong_outcomes_are_allowed),
      cmocka_unit_test(a_text_is_read_as_it_is_written),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
