// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/decision.hpp"

#include <string.h>

#include <initializer_list>
#include <optional>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::coherence::CpuDescription;
using dapple::provider::Architecture;
using dapple::provider::decide;
using dapple::provider::Decision;
using dapple::provider::Facts;
using dapple::provider::fill_coherence;
using dapple::provider::fill_cpu;
using dapple::provider::Firmware;
using dapple::provider::Registration;

constexpr CpuDescription kCapable = {"test", true, true, "wash", "wash out", "wait", 64, 128};
constexpr CpuDescription kIncapable = {"test", false, false, "none", "none", "none", 64, 128};
constexpr CpuDescription kCleansOnly = {"test", true, false, "wash", "none", "wait", 64, 128};

constexpr auto kArchitectures = {Architecture::kX86,     Architecture::kArm64, Architecture::kRiscv64,
                                 Architecture::kPpc64le, Architecture::kS390x, Architecture::kOther};
constexpr auto kFirmwares = {Firmware::kUnreadable, Firmware::kNone,     Firmware::kAcpi,
                             Firmware::kNoProperty, Firmware::kCoherent, Firmware::kNoncoherent};
constexpr auto kRegistrations = {Registration::kNotAsked, Registration::kAccepted, Registration::kRefused};
constexpr auto kWords = {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_COHERENCE_NONCOHERENT_CPU,
                         DAPPLEDV_COHERENCE_NONCOHERENT_IO};

// Calls test(facts) for every possible machine.
template <class Test>
void for_each_machine(Facts facts, Test test) {
  for (Architecture architecture : kArchitectures) {
    for (Firmware firmware : kFirmwares) {
      for (Registration registration : kRegistrations) {
        facts.architecture = architecture;
        facts.firmware = firmware;
        facts.registration = registration;
        test(facts);
      }
    }
  }
}

void assert_decision(const Facts& facts, dappledv_coherence coherence, dappledv_reason reason) {
  const Decision decision = decide(facts);
  assert_int_equal(decision.coherence, coherence);
  assert_int_equal(decision.reason, reason);
  assert_non_null(decision.explanation);
  assert_true(strlen(decision.explanation) > 0);
  assert_null(strchr(decision.explanation, '\n'));
}

void decide__environment_wins_over_all(void**) {
  for (dappledv_coherence said : kWords) {
    for (bool flag : {false, true}) {
      for_each_machine({said, DAPPLEDV_COHERENCE_COHERENT, flag, flag}, [said](const Facts& facts) {
        assert_decision(facts, said, DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT);
      });
    }
  }
}

void decide__parameter_wins_over_what_is_found(void**) {
  for (dappledv_coherence said : kWords) {
    for (bool flag : {false, true}) {
      for_each_machine({{}, said, flag, flag}, [said](const Facts& facts) {
        assert_decision(facts, said, DAPPLEDV_REASON_OVERRIDE_PARAMETER);
      });
    }
  }
}

void decide__software_device_is_coherent_everywhere(void**) {
  for_each_machine({{}, {}, true}, [](const Facts& facts) {
    assert_decision(facts, DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_SOFTWARE_DEVICE);
  });
}

void decide__bounced_dma_is_not_coherent_anywhere(void**) {
  Facts bounced;
  bounced.bounced = true;
  for_each_machine(bounced, [](const Facts& facts) {
    assert_decision(facts, DAPPLEDV_COHERENCE_BOUNCED, DAPPLEDV_REASON_KERNEL);
    assert_non_null(strstr(decide(facts).explanation, "ibv_alloc_buf()"));
  });
}

// The refusal overrides facts for coherence, but not facts against it.
void decide__a_kernel_that_refuses_leaves_nothing_coherent(void**) {
  for_each_machine({}, [](const Facts& facts) {
    if (facts.registration != Registration::kRefused) return;
    Facts not_asked = facts;
    not_asked.registration = Registration::kNotAsked;
    const Decision without = decide(not_asked);
    if (without.coherence == DAPPLEDV_COHERENCE_COHERENT) {
      assert_decision(facts, DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_REASON_ASSUMED);
    } else {
      assert_decision(facts, without.coherence, without.reason);
    }
  });
}

void decide__kernel_wins_over_firmware(void**) {
  for_each_machine({}, [](const Facts& facts) {
    if (facts.registration != Registration::kAccepted) return;
    assert_decision(facts, DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_KERNEL);
  });
}

void decide__firmware_wins_over_the_architecture(void**) {
  for_each_machine({}, [](const Facts& facts) {
    if (facts.registration != Registration::kNotAsked) return;
    if (facts.firmware == Firmware::kCoherent) {
      assert_decision(facts, DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_FIRMWARE);
    }
    if (facts.firmware == Firmware::kNoncoherent) {
      assert_decision(facts, DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_FIRMWARE);
    }
  });
}

void decide__architectures_rule(void**) {
  struct Rule {
    Architecture architecture;
    Firmware firmware;
    dappledv_coherence coherence;
    dappledv_reason reason;
  };
  constexpr auto kYes = DAPPLEDV_COHERENCE_COHERENT;
  constexpr auto kNo = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  constexpr auto kUnknown = DAPPLEDV_COHERENCE_UNKNOWN;
  constexpr auto kRule = DAPPLEDV_REASON_ARCHITECTURE;
  constexpr auto kAssumed = DAPPLEDV_REASON_ASSUMED;
  for (Architecture architecture : {Architecture::kX86, Architecture::kPpc64le, Architecture::kS390x}) {
    for (Firmware firmware : {Firmware::kUnreadable, Firmware::kNone, Firmware::kAcpi, Firmware::kNoProperty}) {
      assert_decision({{}, {}, false, false, Registration::kNotAsked, firmware, architecture}, kYes, kRule);
      // The device itself does not report that its DMA is bounced, and a confidential guest is an x86 machine too.
      assert_null(
          strstr(decide({{}, {}, false, false, Registration::kNotAsked, firmware, architecture}).explanation, "every"));
    }
  }
  const Rule rules[] = {
      {Architecture::kArm64, Firmware::kNoProperty, kNo, kRule},
      {Architecture::kArm64, Firmware::kAcpi, kYes, kAssumed},
      {Architecture::kArm64, Firmware::kNone, kUnknown, kAssumed},
      {Architecture::kArm64, Firmware::kUnreadable, kUnknown, kAssumed},
      {Architecture::kRiscv64, Firmware::kNoProperty, kYes, kRule},
      {Architecture::kRiscv64, Firmware::kAcpi, kYes, kRule},
      {Architecture::kRiscv64, Firmware::kNone, kYes, kRule},
      {Architecture::kRiscv64, Firmware::kUnreadable, kUnknown, kAssumed},
      {Architecture::kOther, Firmware::kNoProperty, kUnknown, kAssumed},
      {Architecture::kOther, Firmware::kUnreadable, kUnknown, kAssumed},
  };
  for (const Rule& rule : rules) {
    assert_decision({{}, {}, false, false, Registration::kNotAsked, rule.firmware, rule.architecture}, rule.coherence,
                    rule.reason);
  }
}

void certainty__of_each_reason(void**) {
  using dapple::provider::certainty_of;
  assert_int_equal(certainty_of(DAPPLEDV_REASON_NONE), DAPPLEDV_CERTAINTY_NONE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT), DAPPLEDV_CERTAINTY_OVERRIDE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_OVERRIDE_PARAMETER), DAPPLEDV_CERTAINTY_OVERRIDE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_OVERRIDE_REGION), DAPPLEDV_CERTAINTY_OVERRIDE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_EMULATOR), DAPPLEDV_CERTAINTY_OVERRIDE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_SOFTWARE_DEVICE), DAPPLEDV_CERTAINTY_KERNEL);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_KERNEL), DAPPLEDV_CERTAINTY_KERNEL);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_DMABUF), DAPPLEDV_CERTAINTY_KERNEL);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_FIRMWARE), DAPPLEDV_CERTAINTY_FIRMWARE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_ARCHITECTURE), DAPPLEDV_CERTAINTY_ARCHITECTURE);
  assert_int_equal(certainty_of(DAPPLEDV_REASON_ASSUMED), DAPPLEDV_CERTAINTY_ASSUMED);
}

void this_architecture__is_the_compilers(void**) {
#if defined(__x86_64__)
  assert_true(dapple::provider::this_architecture() == Architecture::kX86);
#elif defined(__aarch64__)
  assert_true(dapple::provider::this_architecture() == Architecture::kArm64);
#else
  skip_test("the test knows no name of this architecture");
#endif
}

struct Flags {
  int for_device, for_cpu, supported, complete;
};

void assert_flags(dappledv_coherence coherence, const CpuDescription& cpu, const Flags& expected) {
  dappledv_device_attr attr;
  memset(&attr, 0xa5, sizeof(attr));
  const Decision decision = {coherence, DAPPLEDV_REASON_ASSUMED, "because"};
  fill_coherence(decision, cpu, attr);
  fill_cpu(cpu, attr);
  assert_int_equal(attr.coherence, coherence);
  assert_int_equal(attr.reason, DAPPLEDV_REASON_ASSUMED);
  assert_int_equal(attr.line_size, 64);
  assert_int_equal(attr.writeback_granule, 128);
  assert_int_equal(attr.sync_for_device_required, expected.for_device);
  assert_int_equal(attr.sync_for_cpu_required, expected.for_cpu);
  assert_int_equal(attr.sync_supported, expected.supported);
  assert_int_equal(attr.sync_complete, expected.complete);
  assert_int_equal(attr.certainty, DAPPLEDV_CERTAINTY_ASSUMED);
  assert_ptr_equal(attr.clean_instruction, cpu.clean_instruction);
  assert_ptr_equal(attr.clean_invalidate_instruction, cpu.clean_invalidate_instruction);
  assert_string_equal(attr.explanation, "because");
}

void fill_coherence__cpu_that_can(void**) {
  assert_flags(DAPPLEDV_COHERENCE_COHERENT, kCapable, {0, 0, 1, 1});
  assert_flags(DAPPLEDV_COHERENCE_NONCOHERENT_CPU, kCapable, {1, 1, 1, 1});
  assert_flags(DAPPLEDV_COHERENCE_NONCOHERENT_IO, kCapable, {1, 1, 1, 0});
  assert_flags(DAPPLEDV_COHERENCE_UNKNOWN, kCapable, {1, 1, 1, 1});
  // No instruction repairs that.
  assert_flags(DAPPLEDV_COHERENCE_BOUNCED, kCapable, {1, 1, 0, 0});
}

// A coherent device needs no cache instruction and stays usable.
void fill_coherence__cpu_that_cannot(void**) {
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
      cmocka_unit_test(decide__bounced_dma_is_not_coherent_anywhere),
      cmocka_unit_test(decide__a_kernel_that_refuses_leaves_nothing_coherent),
      cmocka_unit_test(decide__kernel_wins_over_firmware),
      cmocka_unit_test(decide__firmware_wins_over_the_architecture),
      cmocka_unit_test(decide__architectures_rule),
      cmocka_unit_test(certainty__of_each_reason),
      cmocka_unit_test(this_architecture__is_the_compilers),
      cmocka_unit_test(fill_coherence__cpu_that_can),
      cmocka_unit_test(fill_coherence__cpu_that_cannot),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
