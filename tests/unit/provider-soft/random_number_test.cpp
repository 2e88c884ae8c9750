// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A process reads its seed once, so each case is a child.
#include "provider/system/random.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provider/common/settings.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

struct Numbers {
  uint32_t keys[4];
  uint32_t ports[4];
};

// ports_first: the order in which a child draws the numbers.
void draw(Numbers& numbers, bool ports_first) {
  const RandomUse uses[] = {RandomUse::kKeys, RandomUse::kSourcePorts};
  uint32_t* const places[] = {numbers.keys, numbers.ports};
  for (int i = 0; i < 2; i++) {
    const int which = ports_first ? 1 - i : i;
    for (int j = 0; j < 4; j++) places[which][j] = random_number(uses[which]);
  }
}

Numbers numbers_with(const char* seed, bool ports_first = false) {
  Numbers numbers = {};
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (seed == nullptr) unsetenv("DAPPLE_SEED");
    if (seed != nullptr) setenv("DAPPLE_SEED", seed, 1);
    provider::read_settings_again();
    draw(numbers, ports_first);
    _exit(write(ends[1], &numbers, sizeof numbers) == sizeof numbers ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(read(ends[0], &numbers, sizeof numbers), sizeof numbers);
  close(ends[0]);
  close(ends[1]);
  return numbers;
}

bool same(const Numbers& a, const Numbers& b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

void random_number__same_seed__same_numbers_whatever_is_drawn_first(void**) {
  assert_true(same(numbers_with("7"), numbers_with("7")));
  assert_true(same(numbers_with("7"), numbers_with("7", true)));
  assert_false(same(numbers_with("7"), numbers_with("8")));
}

void random_number__without_seed__other_numbers_each_time(void**) {
  assert_false(same(numbers_with(nullptr), numbers_with(nullptr)));
}

void random_number__two_uses__two_sequences(void**) {
  const Numbers numbers = numbers_with("7");
  assert_memory_not_equal(numbers.keys, numbers.ports, sizeof numbers.keys);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(random_number__same_seed__same_numbers_whatever_is_drawn_first),
      cmocka_unit_test(random_number__without_seed__other_numbers_each_time),
      cmocka_unit_test(random_number__two_uses__two_sequences),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
