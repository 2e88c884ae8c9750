// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/line_walk.hpp"

#include <stdint.h>

#include <array>
#include <iterator>

#include "tests/unit/coherence/check.hpp"

namespace {

using dapple::coherence::for_each_line;
using dapple::coherence::is_power_of_two;

constexpr std::array<uintptr_t, 3> kLineSizesBytes = {32, 64, 128};

struct Lines {
  std::array<uintptr_t, 64> at = {};
  size_t count = 0;
};

Lines walk(uintptr_t address, size_t length, uintptr_t line_size_bytes) {
  Lines lines;
  for_each_line(address, length, line_size_bytes, [&lines](uintptr_t line) {
    if (lines.count < lines.at.size()) lines.at[lines.count] = line;
    ++lines.count;
  });
  return lines;
}

void zero_length__touches_nothing() {
  for (uintptr_t size : kLineSizesBytes) {
    for (uintptr_t address : {uintptr_t{0}, uintptr_t{0x1000}, uintptr_t{0x1001}, UINTPTR_MAX}) {
      CHECK(walk(address, 0, size).count == 0);
    }
  }
}

void one_byte__touches_the_line_that_holds_it() {
  for (uintptr_t size : kLineSizesBytes) {
    for (uintptr_t offset : {uintptr_t{0}, uintptr_t{1}, size - 1}) {
      const Lines lines = walk(0x1000 + offset, 1, size);
      CHECK(lines.count == 1);
      CHECK(lines.at[0] == 0x1000);
    }
  }
}

void two_bytes_across_a_boundary__touch_both_lines() {
  for (uintptr_t size : kLineSizesBytes) {
    const Lines lines = walk(0x1000 + size - 1, 2, size);
    CHECK(lines.count == 2);
    CHECK(lines.at[0] == 0x1000);
    CHECK(lines.at[1] == 0x1000 + size);
  }
}

void whole_lines__touch_no_neighbour() {
  for (uintptr_t size : kLineSizesBytes) {
    const Lines lines = walk(0x2000, 3 * size, size);
    CHECK(lines.count == 3);
    CHECK(lines.at[0] == 0x2000);
    CHECK(lines.at[2] == 0x2000 + 2 * size);
  }
}

// Compares every start and length over a few lines with a test of each line for a byte of the range.
void any_range__touches_exactly_the_lines_that_hold_its_bytes() {
  for (uintptr_t size : kLineSizesBytes) {
    const uintptr_t base = 0x4000;
    for (uintptr_t start = 0; start < 2 * size; ++start) {
      for (size_t length = 1; length <= 3 * size; ++length) {
        const Lines lines = walk(base + start, length, size);
        size_t expected = 0;
        bool all_right = true;
        for (uintptr_t line = 0; line < 6 * size; line += size) {
          if (line + size <= start || line >= start + length) continue;
          all_right = all_right && expected < lines.count && lines.at[expected] == base + line;
          ++expected;
        }
        CHECK(all_right && lines.count == expected);
      }
    }
  }
}

void range_to_the_last_byte_of_the_address_space__ends() {
  for (uintptr_t size : kLineSizesBytes) {
    const uintptr_t last_line = UINTPTR_MAX - size + 1;
    Lines lines = walk(UINTPTR_MAX, 1, size);
    CHECK(lines.count == 1);
    CHECK(lines.at[0] == last_line);

    lines = walk(last_line - size, 2 * size, size);
    CHECK(lines.count == 2);
    CHECK(lines.at[0] == last_line - size);
    CHECK(lines.at[1] == last_line);
  }
}

void range_past_the_end_of_the_address_space__is_clipped() {
  for (uintptr_t size : kLineSizesBytes) {
    const uintptr_t last_line = UINTPTR_MAX - size + 1;
    for (size_t length : {size_t{2}, size_t{4096}, SIZE_MAX}) {
      const Lines lines = walk(UINTPTR_MAX, length, size);
      CHECK(lines.count == 1);
      CHECK(lines.at[0] == last_line);
    }
  }
}

void all_of_the_address_space__is_each_line_once() {
  constexpr uintptr_t kHugeLineBytes = UINTPTR_MAX / 16 + 1;
  CHECK(walk(0, SIZE_MAX, kHugeLineBytes).count == 16);
  CHECK(walk(kHugeLineBytes + 1, SIZE_MAX, kHugeLineBytes).count == 15);
}

void is_power_of_two__all() {
  CHECK(!is_power_of_two(0));
  CHECK(is_power_of_two(1));
  CHECK(is_power_of_two(64));
  CHECK(!is_power_of_two(96));
  CHECK(is_power_of_two(uint64_t{1} << 63));
}

constexpr dapple::test::Test kTests[] = {
    {"zero_length__touches_nothing", zero_length__touches_nothing},
    {"one_byte__touches_the_line_that_holds_it", one_byte__touches_the_line_that_holds_it},
    {"two_bytes_across_a_boundary__touch_both_lines", two_bytes_across_a_boundary__touch_both_lines},
    {"whole_lines__touch_no_neighbour", whole_lines__touch_no_neighbour},
    {"any_range__touches_exactly_the_lines_that_hold_its_bytes",
     any_range__touches_exactly_the_lines_that_hold_its_bytes},
    {"range_to_the_last_byte_of_the_address_space__ends", range_to_the_last_byte_of_the_address_space__ends},
    {"range_past_the_end_of_the_address_space__is_clipped", range_past_the_end_of_the_address_space__is_clipped},
    {"all_of_the_address_space__is_each_line_once", all_of_the_address_space__is_each_line_once},
    {"is_power_of_two__all", is_power_of_two__all},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
