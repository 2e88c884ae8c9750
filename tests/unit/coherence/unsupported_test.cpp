// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Linked with the back end for architectures without one, on any machine.
#include <string.h>

#include <iterator>

#include "coherence/cache.hpp"
#include "coherence/line_walk.hpp"
#include "tests/unit/coherence/check.hpp"

namespace {

using dapple::coherence::BackEnd;
using dapple::coherence::cpu_back_end;
using dapple::coherence::is_power_of_two;

void description__says_that_nothing_is_available() {
  const BackEnd& back_end = cpu_back_end();
  CHECK(strcmp(back_end.cpu.architecture, "unsupported") == 0);
  CHECK(!back_end.cpu.can_clean && !back_end.cpu.can_clean_invalidate);
  CHECK(strcmp(back_end.cpu.clean_instruction, "none") == 0);
  CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, "none") == 0);
  CHECK(back_end.clean_range == nullptr && back_end.clean_invalidate_range == nullptr);
  CHECK(!back_end.cpu.can_persist && back_end.persist_range == nullptr);
  CHECK(strcmp(back_end.cpu.persist_instruction, "none") == 0);
  CHECK(back_end.cpu.refusal != nullptr);
}

void description__still_gives_sizes_to_align_to() {
  const BackEnd& back_end = cpu_back_end();
  CHECK(is_power_of_two(back_end.cpu.line_size_bytes));
  CHECK(is_power_of_two(back_end.cpu.writeback_granule_bytes));
  CHECK(back_end.cpu.writeback_granule_bytes >= back_end.cpu.line_size_bytes);
}

void fences__can_be_called() {
  const BackEnd& back_end = cpu_back_end();
  back_end.order_before_device_reads();
  back_end.order_after_device_writes();
  back_end.order_before_maintenance();
  back_end.complete_maintenance();
  back_end.complete_persistence();
  back_end.full_barrier();
}

constexpr dapple::test::Test kTests[] = {
    {"description__says_that_nothing_is_available", description__says_that_nothing_is_available},
    {"description__still_gives_sizes_to_align_to", description__still_gives_sizes_to_align_to},
    {"fences__can_be_called", fences__can_be_called},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
