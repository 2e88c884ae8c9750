// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/decision.hpp"

#include <string.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::coherence::CpuDescription;
using dapple::provider::Architecture;
using dapple::provider::decide;
using dapple::provider::Decision;
using dapple::provider::Facts;
using dapple::provider::fill_device_attr;

constexpr CpuDescription kCapable = {"test", true, true, "wash", "wash out", "wait", 64, 128};
constexpr CpuDescription kIncapable = {"test", false, false, "none", "none", "none", 64, 128};
constexpr CpuDescription kCleansOnly = {"test", true, false, "wash", "none", "wait", 64, 128};

void assert_decision(const Facts& facts, dappledv_coherence coherence, dappledv_reason reason) {
  const Decision decision = decide(facts);
  assert_int_equal(decision.coherence, coherence);
  assert_int_equal(decision.reason, reason);
  assert_non_null(decision.explanation);
  assert_true(strlen(decision.explanation) > 0);
  assert_null(strchr(decision.explanation, '\n'));
}

void decide__environment_wins_over_all(void**) {
  for (dappledv_coherence said :
       {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_NONCOHERENT_IO}) {
    assert_decision({said, DAPPLEDV_COHERENCE_COHERENT, true, Architecture::kX86}, said,
                    DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
    assert_decision({said, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, false, Architecture::kArm64}, said,
                    DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
  }
}

void decide__parameter_wins_over_what_is_found(void**) {
  for (dappledv_coherence said :
       {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_COHERENCE_NONCOHERENT_IO}) {
    assert_decision({{}, said, true, Architecture::kX86}, said, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
    assert_decision({{}, said, false, Architecture::kArm64}, said, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
  }
}

void decide__software_device_is_coherent_everywhere(void**) {
  for (Architecture architecture : {Architecture::kX86, Architecture::kArm64, Architecture::kRiscv64,
                                    Architecture::kPpc64le, Architecture::kS390x, Architecture::kOther}) {
    assert_decision({{}, {}, true, architecture}, DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_SOFTWARE_DEVICE);
  }
}

void decide__architectures_with_a_rule(void**) {
  for (Architecture architecture :
       {Architecture::kX86, Architecture::kPpc64le, Architecture::kS390x, Architecture::kRiscv64}) {
    assert_decision({{}, {}, false, architecture}, DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_ARCHITECTURE);
  }
}

void decide__architectures_without_a_rule_are_unknown(void**) {
  for (Architecture architecture : {Architecture::kArm64, Architecture::kOther}) {
    assert_decision({{}, {}, false, architecture}, DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_REASON_ASSUMED);
  }
}

void this_architecture__is_the_compilers(void**) {
#if defined(__x86_64__)
  assert_true(dapple::provider::this_architecture() == Architecture::kX86);
#elif defined(__aarch64__)
  assert_true(dapple::provider::this_architecture() == Architecture::kArm64);
#else
  skip();
#endif
}

struct Flags {
  int for_device, for_cpu, supported, complete;
};

void assert_flags(dappledv_coherence coherence, const CpuDescription& cpu, const Flags& expected) {
  dappledv_device_attr attr;
  memset(&attr, 0xa5, sizeof(attr));
  const Decision decision = {coherence, DAPPLEDV_REASON_ASSUMED, "because"};
  fill_device_attr(decision, cpu, attr);
  assert_int_equal(attr.comp_mask, 0);
  assert_int_equal(attr.coherence, coherence);
  assert_int_equal(attr.reason, DAPPLEDV_REASON_ASSUMED);
  assert_int_equal(attr.line_size, 64);
  assert_int_equal(attr.writeback_granule, 128);
  assert_int_equal(attr.sync_for_device_required, expected.for_device);
  assert_int_equal(attr.sync_for_cpu_required, expected.for_cpu);
  assert_int_equal(attr.sync_supported, expected.supported);
  assert_int_equal(attr.sync_complete, expected.complete);
  assert_int_equal(attr.reserved, 0);
  assert_ptr_equal(attr.clean_instruction, cpu.clean_instruction);
  assert_ptr_equal(attr.clean_invalidate_instruction, cpu.clean_invalidate_instruction);
  assert_string_equal(attr.explanation, "because");
}

void fill_device_attr__cpu_that_can(void**) {
  assert_flags(DAPPLEDV_COHERENCE_COHERENT, kCapable, {0, 0, 1, 1});
  assert_flags(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, kCapable, {1, 1, 1, 1});
  assert_flags(DAPPLEDV_COHERENCE_NONCOHERENT_IO, kCapable, {1, 1, 1, 0});
  assert_flags(DAPPLEDV_COHERENCE_UNKNOWN, kCapable, {1, 1, 1, 1});
}

// A coherent device needs nothing of the CPU and stays usable.
void fill_device_attr__cpu_that_cannot(void**) {
  for (const CpuDescription& cpu : {kIncapable, kCleansOnly}) {
    assert_flags(DAPPLEDV_COHERENCE_COHERENT, cpu, {0, 0, 1, 1});
    assert_flags(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, cpu, {1, 1, 0, 0});
    assert_flags(DAPPLEDV_COHERENCE_NONCOHERENT_IO, cpu, {1, 1, 0, 0});
    assert_flags(DAPPLEDV_COHERENCE_UNKNOWN, cpu, {1, 1, 0, 0});
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(decide__environment_wins_over_all),
      cmocka_unit_test(decide__parameter_wins_over_what_is_found),
      cmocka_unit_test(decide__software_device_is_coherent_everywhere),
      cmocka_unit_test(decide__architectures_with_a_rule),
      cmocka_unit_test(decide__architectures_without_a_rule_are_unknown),
      cmocka_unit_test(this_architecture__is_the_compilers),
      cmocka_unit_test(fill_device_attr__cpu_that_can),
      cmocka_unit_test(fill_device_attr__cpu_that_cannot),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
