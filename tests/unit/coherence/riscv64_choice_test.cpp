// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <string.h>

#include "coherence/riscv64.hpp"
#include "tests/unit/coherence/check.hpp"

#include <initializer_list>
#include <iterator>

namespace {

using dapple::coherence::BackEnd;
using dapple::coherence::is_power_of_two;
using dapple::coherence::riscv64::choose;

void refusal__says_why_and_offers_nothing() {
  for (const bool hwprobe : {false, true}) {
    const BackEnd back_end = choose({hwprobe, false, 64});
    CHECK(!back_end.cpu.can_clean && !back_end.cpu.can_clean_invalidate && !back_end.cpu.can_persist);
    CHECK(back_end.clean_range == nullptr && back_end.clean_invalidate_range == nullptr);
    CHECK(strcmp(back_end.cpu.clean_instruction, "none") == 0);
    CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, "none") == 0);
    CHECK(back_end.cpu.refusal != nullptr &&
          strstr(back_end.cpu.refusal, hwprobe ? "Zicbom" : "riscv_hwprobe") != nullptr);
    CHECK(is_power_of_two(back_end.cpu.line_size_bytes));
    CHECK(back_end.cpu.writeback_granule_bytes >= back_end.cpu.line_size_bytes);
  }
}

void zicbom__by_blocks() {
  const BackEnd back_end = choose({true, true, 32});
  CHECK(back_end.cpu.can_clean && back_end.cpu.can_clean_invalidate && back_end.cpu.refusal == nullptr);
  CHECK(strcmp(back_end.cpu.clean_instruction, "cbo.clean") == 0);
  CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, "cbo.flush") == 0);
  CHECK(back_end.clean_range != back_end.clean_invalidate_range);
  CHECK(back_end.cpu.line_size_bytes == 32 && back_end.cpu.writeback_granule_bytes == 32);
  CHECK(!back_end.cpu.can_persist && back_end.persist_range == nullptr);
}

void zicbom_without_a_block_size__leaves_no_block_out() {
  const BackEnd back_end = choose({true, true, 0});
  CHECK(back_end.cpu.can_clean);
  CHECK(back_end.cpu.line_size_bytes == 16 && back_end.cpu.writeback_granule_bytes == 128);
}

constexpr dapple::test::Test kTests[] = {
    {"refusal__says_why_and_offers_nothing", refusal__says_why_and_offers_nothing},
    {"zicbom__by_blocks", zicbom__by_blocks},
    {"zicbom_without_a_block_size__leaves_no_block_out", zicbom_without_a_block_size__leaves_no_block_out},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
