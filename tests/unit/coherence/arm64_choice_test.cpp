// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <string.h>

#include "coherence/arm64.hpp"
#include "tests/unit/coherence/check.hpp"

#include <iterator>

namespace {

using dapple::coherence::BackEnd;
using dapple::coherence::arm64::choose;
using dapple::coherence::arm64::PersistencePoint;

struct Expected {
  PersistencePoint point;
  const char* instruction;
};

constexpr Expected kExpected[] = {
    {PersistencePoint::kNone, "none"},
    {PersistencePoint::kPersistence, "dc cvap"},
    {PersistencePoint::kDeepPersistence, "dc cvadp"},
};

void choose__each_point_of_persistence() {
  for (const Expected& expected : kExpected) {
    const BackEnd back_end = choose({32, 64}, expected.point);
    CHECK(strcmp(back_end.cpu.clean_instruction, "dc cvac") == 0);
    CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, "dc civac") == 0);
    CHECK(strcmp(back_end.cpu.persist_instruction, expected.instruction) == 0);
    CHECK(back_end.cpu.can_persist == (expected.point != PersistencePoint::kNone));
    CHECK(back_end.cpu.can_persist == (back_end.persist_range != nullptr));
    CHECK(back_end.cpu.line_size_bytes == 32 && back_end.cpu.writeback_granule_bytes == 64);
  }
}

// The reported name must match the executed code.
void choose__equal_names_are_equal_code() {
  for (const Expected& one : kExpected) {
    for (const Expected& other : kExpected) {
      CHECK((one.point == other.point) ==
            (choose({64, 64}, one.point).persist_range == choose({64, 64}, other.point).persist_range));
    }
  }
}

constexpr dapple::test::Test kTests[] = {
    {"choose__each_point_of_persistence", choose__each_point_of_persistence},
    {"choose__equal_names_are_equal_code", choose__equal_names_are_equal_code},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
