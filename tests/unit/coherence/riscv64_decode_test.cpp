// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "coherence/riscv64.hpp"
#include "tests/unit/coherence/check.hpp"

#include <initializer_list>
#include <iterator>

namespace {

using dapple::coherence::riscv64::decode_hwprobe;
using dapple::coherence::riscv64::Features;
using dapple::coherence::riscv64::HwprobePair;

constexpr HwprobePair kZicbom = {4, uint64_t{1} << 55};
constexpr HwprobePair kNoZicbom = {4, ~(uint64_t{1} << 55)};
constexpr HwprobePair kUnknownKey = {-1, 0};

constexpr HwprobePair block(uint64_t bytes) {
  return {12, bytes};
}

void kernel_without_the_system_call__has_nothing() {
  // The pairs keep their values from before the call.
  const Features features = decode_hwprobe({-1, kZicbom, block(64)});
  CHECK(!features.hwprobe && !features.zicbom && features.block_size == 0);
}

void kernel_that_knows_no_zicbom__has_none() {
  const Features features = decode_hwprobe({0, kNoZicbom, kUnknownKey});
  CHECK(features.hwprobe && !features.zicbom && features.block_size == 0);
}

void unknown_key__has_no_say() {
  CHECK(!decode_hwprobe({0, {-1, ~uint64_t{0}}, block(64)}).zicbom);
  CHECK(decode_hwprobe({0, kZicbom, {-1, 64}}).block_size == 0);
}

void zicbom__with_its_block_size() {
  for (const uint32_t bytes : {16U, 32U, 64U, 128U, 4096U}) {
    const Features features = decode_hwprobe({0, kZicbom, block(bytes)});
    CHECK(features.hwprobe && features.zicbom && features.block_size == bytes);
  }
}

// The kernel answers -1 if the CPUs differ.
void block_size_that_is_none__is_not_said() {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{96}, uint64_t{131072}, uint64_t{1} << 32, UINT64_MAX}) {
    const Features features = decode_hwprobe({0, kZicbom, block(bytes)});
    CHECK(features.zicbom && features.block_size == 0);
  }
}

constexpr dapple::test::Test kTests[] = {
    {"kernel_without_the_system_call__has_nothing", kernel_without_the_system_call__has_nothing},
    {"kernel_that_knows_no_zicbom__has_none", kernel_that_knows_no_zicbom__has_none},
    {"unknown_key__has_no_say", unknown_key__has_no_say},
    {"zicbom__with_its_block_size", zicbom__with_its_block_size},
    {"block_size_that_is_none__is_not_said", block_size_that_is_none__is_not_said},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
