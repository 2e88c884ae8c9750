// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <string.h>

#include "coherence/ppc64le.hpp"
#include "tests/unit/coherence/check.hpp"

#include <iterator>

namespace {

using dapple::coherence::BackEnd;
using dapple::coherence::ppc64le::choose;

void choose__by_blocks() {
  const BackEnd back_end = choose({64, false});
  CHECK(back_end.cpu.can_clean && back_end.cpu.can_clean_invalidate && back_end.cpu.refusal == nullptr);
  CHECK(strcmp(back_end.cpu.clean_instruction, "dcbst") == 0);
  CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, "dcbf") == 0);
  CHECK(back_end.clean_range != back_end.clean_invalidate_range);
  CHECK(back_end.cpu.line_size_bytes == 64 && back_end.cpu.writeback_granule_bytes == 64);
}

void persistence__only_where_the_cpu_has_it() {
  const BackEnd without = choose({128, false});
  CHECK(!without.cpu.can_persist && without.persist_range == nullptr);
  CHECK(strcmp(without.cpu.persist_instruction, "none") == 0);
  CHECK(without.complete_persistence == without.complete_maintenance);

  const BackEnd with = choose({128, true});
  CHECK(with.cpu.can_persist && with.persist_range != nullptr);
  CHECK(strcmp(with.cpu.persist_instruction, "dcbstps") == 0);
  CHECK(with.persist_range != with.clean_range);
  CHECK(with.complete_persistence != with.complete_maintenance);
}

constexpr dapple::test::Test kTests[] = {
    {"choose__by_blocks", choose__by_blocks},
    {"persistence__only_where_the_cpu_has_it", persistence__only_where_the_cpu_has_it},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
