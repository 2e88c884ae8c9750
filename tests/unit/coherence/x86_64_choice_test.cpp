// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <string.h>

#include <initializer_list>
#include <iterator>

#include "coherence/x86_64.hpp"
#include "tests/unit/coherence/check.hpp"

namespace {

namespace x86_64 = dapple::coherence::x86_64;
using dapple::coherence::BackEnd;
using x86_64::CpuidWords;
using x86_64::Features;

constexpr uint32_t kLeaf1EdxClflush = 1u << 19;
constexpr uint32_t kLeaf7EbxClflushopt = 1u << 23;
constexpr uint32_t kLeaf7EbxClwb = 1u << 24;
constexpr uint32_t kLeaf1Ebx64ByteLine = 8u << 8;

void decode__each_bit_is_its_own() {
  const Features none =
      decode_cpuid(CpuidWords{7, kLeaf1Ebx64ByteLine, ~kLeaf1EdxClflush, ~(kLeaf7EbxClflushopt | kLeaf7EbxClwb)});
  CHECK(!none.clflush && !none.clflushopt && !none.clwb);
  const Features clflush = decode_cpuid(CpuidWords{7, kLeaf1Ebx64ByteLine, kLeaf1EdxClflush, 0});
  CHECK(clflush.clflush && !clflush.clflushopt && !clflush.clwb);
  const Features clflushopt = decode_cpuid(CpuidWords{7, kLeaf1Ebx64ByteLine, 0, kLeaf7EbxClflushopt});
  CHECK(!clflushopt.clflush && clflushopt.clflushopt && !clflushopt.clwb);
  const Features clwb = decode_cpuid(CpuidWords{7, kLeaf1Ebx64ByteLine, 0, kLeaf7EbxClwb});
  CHECK(!clwb.clflush && !clwb.clflushopt && clwb.clwb);
}

// A CPU without a leaf answers with another leaf's registers.
void decode__leaf_that_is_not_there_has_no_say() {
  const Features no_leaf7 = decode_cpuid(CpuidWords{6, kLeaf1Ebx64ByteLine, kLeaf1EdxClflush, 0xffffffff});
  CHECK(no_leaf7.clflush && !no_leaf7.clflushopt && !no_leaf7.clwb);
  const Features no_leaf1 = decode_cpuid(CpuidWords{0, 0xffffffff, 0xffffffff, 0xffffffff});
  CHECK(!no_leaf1.clflush && !no_leaf1.clflushopt && !no_leaf1.clwb);
  CHECK(no_leaf1.line_size_bytes == 64);
}

void decode__line_size() {
  const auto size = [](uint32_t units) { return decode_cpuid(CpuidWords{1, units << 8, kLeaf1EdxClflush, 0}); };
  CHECK(size(8).line_size_bytes == 64);
  CHECK(size(8).granule_bytes == 64);
  // No CPU reports these values, but a hypervisor may: the stride must not skip a line, and the alignment must keep two
  // owners apart.
  CHECK(size(4).line_size_bytes == 32);
  CHECK(size(4).granule_bytes == 64);
  for (const uint32_t units : {16u, 32u, 64u, 128u}) {
    CHECK(size(units).line_size_bytes == 64);
    CHECK(size(units).granule_bytes == units * 8);
  }
  // The bytes around it belong to other fields.
  CHECK(decode_cpuid(CpuidWords{1, 0xffff00ff | 16u << 8, kLeaf1EdxClflush, 0}).granule_bytes == 128);
  // Invalid sizes, and a size without its instruction.
  CHECK(decode_cpuid(CpuidWords{1, 0, kLeaf1EdxClflush, 0}).line_size_bytes == 64);
  CHECK(decode_cpuid(CpuidWords{1, 12u << 8, kLeaf1EdxClflush, 0}).line_size_bytes == 64);
  CHECK(decode_cpuid(CpuidWords{1, 16u << 8, 0, 0}).line_size_bytes == 64);
}

struct Expected {
  Features features;
  const char* clean;
  const char* clean_invalidate;
};

constexpr Expected kExpected[] = {
    {{false, false, false, 64}, "none", "none"},
    {{true, false, false, 64}, "clflush", "clflush"},
    {{false, true, false, 64}, "clflushopt", "clflushopt"},
    {{true, true, false, 64}, "clflushopt", "clflushopt"},
    {{false, false, true, 64}, "clwb", "none"},
    {{true, false, true, 64}, "clwb", "clflush"},
    {{false, true, true, 64}, "clwb", "clflushopt"},
    {{true, true, true, 64}, "clwb", "clflushopt"},
};

void choose__each_set_of_features() {
  for (const Expected& expected : kExpected) {
    const BackEnd back_end = x86_64::choose(expected.features);
    CHECK(strcmp(back_end.cpu.clean_instruction, expected.clean) == 0);
    CHECK(strcmp(back_end.cpu.clean_invalidate_instruction, expected.clean_invalidate) == 0);
    CHECK(back_end.cpu.can_clean == (strcmp(expected.clean, "none") != 0));
    CHECK(back_end.cpu.can_clean_invalidate == (strcmp(expected.clean_invalidate, "none") != 0));
    CHECK((back_end.clean_range != nullptr) == back_end.cpu.can_clean);
    CHECK((back_end.clean_invalidate_range != nullptr) == back_end.cpu.can_clean_invalidate);
    // An instruction that cleans a line brings it to the memory controller, and so to persistence.
    CHECK(strcmp(back_end.cpu.persist_instruction, expected.clean) == 0);
    CHECK(back_end.cpu.can_persist == back_end.cpu.can_clean && back_end.persist_range == back_end.clean_range);
    CHECK((back_end.cpu.refusal == nullptr) == (back_end.cpu.can_clean && back_end.cpu.can_clean_invalidate));
    CHECK(back_end.cpu.line_size_bytes == 64);
    CHECK(back_end.cpu.writeback_granule_bytes == 64);
  }
}

// The reported name must match the executed code.
void choose__equal_names_are_equal_code() {
  for (const Expected& one : kExpected) {
    for (const Expected& other : kExpected) {
      const BackEnd a = x86_64::choose(one.features);
      const BackEnd b = x86_64::choose(other.features);
      CHECK((strcmp(a.cpu.clean_instruction, b.cpu.clean_instruction) == 0) == (a.clean_range == b.clean_range));
      CHECK((strcmp(a.cpu.clean_instruction, b.cpu.clean_invalidate_instruction) == 0) ==
            (a.clean_range == b.clean_invalidate_range));
    }
  }
}

void choose__keeps_the_line_size() {
  const BackEnd back_end = x86_64::choose({true, true, true, 32, 128});
  CHECK(back_end.cpu.line_size_bytes == 32);
  CHECK(back_end.cpu.writeback_granule_bytes == 128);
}

constexpr dapple::test::Test kTests[] = {
    {"decode__each_bit_is_its_own", decode__each_bit_is_its_own},
    {"decode__leaf_that_is_not_there_has_no_say", decode__leaf_that_is_not_there_has_no_say},
    {"decode__line_size", decode__line_size},
    {"choose__each_set_of_features", choose__each_set_of_features},
    {"choose__equal_names_are_equal_code", choose__equal_names_are_equal_code},
    {"choose__keeps_the_line_size", choose__keeps_the_line_size},
};

}  // namespace

int main() {
  return dapple::test::run_all(kTests, std::size(kTests));
}
