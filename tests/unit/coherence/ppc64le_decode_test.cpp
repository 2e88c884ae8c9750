// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/ppc64le.hpp"
#include "tests/unit/coherence/check.hpp"

#include <initializer_list>
#include <iterator>

namespace {

using dapple::coherence::ppc64le::decode_auxv;

constexpr uint64_t kArch31 = 0x00040000;

void block_size__of_the_auxiliary_vector() {
  CHECK(decode_auxv(128, 0).block_size_bytes == 128);
  CHECK(decode_auxv(64, 0).block_size_bytes == 64);
  CHECK(decode_auxv(32, 0).block_size_bytes == 32);
}

void block_size_that_is_none__is_128() {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{96}, uint64_t{131072}, UINT64_MAX}) {
    CHECK(decode_auxv(bytes, 0).block_size_bytes == 128);
  }
}

void persistence__is_a_bit_of_hwcap2() {
  CHECK(!decode_auxv(128, 0).persistence);
  CHECK(!decode_auxv(128, ~kArch31).persistence);
  CHECK(decode_auxv(128, kArch31).persistence);
}

constexpr dapple::test::Test kTests[] = {
    {"block_size__of_the_auxiliary_vector", block_size__of_the_auxiliary_vector},
    {"block_size_that_is_none__is_128", block_size_that_is_none__is_128},
    {"persistence__is_a_bit_of_hwcap2", persistence__is_a_bit_of_hwcap2},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
