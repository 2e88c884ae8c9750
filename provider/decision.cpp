// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/decision.hpp"

#include <stddef.h>

namespace dapple::provider {
namespace {

const char* explain_environment(dappledv_coherence coherence) {
  switch (coherence) {
    case DAPPLEDV_COHERENCE_COHERENT:
      return "override: DAPPLE_COHERENCE says that the device is coherent";
    case DAPPLEDV_COHERENCE_NONCOHERENT_CPU:
      return "override: DAPPLE_COHERENCE says that the CPU's caches need maintenance";
    case DAPPLEDV_COHERENCE_NONCOHERENT_IO:
      return "override: DAPPLE_COHERENCE says that there is a cache on the I/O side, which user space cannot reach";
    case DAPPLEDV_COHERENCE_UNKNOWN:
      break;
  }
  return "override: DAPPLE_COHERENCE";
}

const char* explain_parameter(dappledv_coherence coherence) {
  switch (coherence) {
    case DAPPLEDV_COHERENCE_COHERENT:
      return "override: the configuration says that the device is coherent";
    case DAPPLEDV_COHERENCE_NONCOHERENT_CPU:
      return "override: the configuration says that the CPU's caches need maintenance";
    case DAPPLEDV_COHERENCE_NONCOHERENT_IO:
      return "override: the configuration says that there is a cache on the I/O side, which user space cannot reach";
    case DAPPLEDV_COHERENCE_UNKNOWN:
      break;
  }
  return "override: the configuration";
}

// Null where the architecture leaves it to the machine.
const char* explain_architecture(Architecture architecture) {
  switch (architecture) {
    case Architecture::kX86:
      return "architecture: DMA is coherent on every x86 machine";
    case Architecture::kPpc64le:
      return "architecture: DMA is coherent on every ppc64le machine";
    case Architecture::kS390x:
      return "architecture: DMA is coherent on every s390x machine";
    case Architecture::kRiscv64:
      return "architecture: DMA is coherent on riscv64 unless its firmware says otherwise, which was not looked at";
    case Architecture::kArm64:
    case Architecture::kOther:
      break;
  }
  return nullptr;
}

}  // namespace

Architecture this_architecture() {
#if defined(__x86_64__) || defined(__i386__)
  return Architecture::kX86;
#elif defined(__aarch64__)
  return Architecture::kArm64;
#elif defined(__riscv) && __riscv_xlen == 64
  return Architecture::kRiscv64;
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
  return Architecture::kPpc64le;
#elif defined(__s390x__)
  return Architecture::kS390x;
#else
  return Architecture::kOther;
#endif
}

Decision decide(const Facts& facts) {
  if (facts.environment) {
    return {*facts.environment, DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT, explain_environment(*facts.environment)};
  }
  if (facts.parameter) {
    return {*facts.parameter, DAPPLEDV_REASON_OVERRIDE_PARAMETER, explain_parameter(*facts.parameter)};
  }
  if (facts.software_device) {
    return {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_SOFTWARE_DEVICE, "software device: the CPU does the copying"};
  }
  if (const char* explanation = explain_architecture(facts.architecture)) {
    return {DAPPLEDV_COHERENCE_COHERENT, DAPPLEDV_REASON_ARCHITECTURE, explanation};
  }
  return {DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_REASON_ASSUMED,
          "unknown: nothing says that DMA is coherent, so it is taken not to be"};
}

void fill_device_attr(const Decision& decision, const coherence::CpuDescription& cpu, dappledv_device_attr& attr) {
  const bool coherent = decision.coherence == DAPPLEDV_COHERENCE_COHERENT;
  const bool cpu_can = cpu.can_clean && cpu.can_clean_invalidate;
  attr.comp_mask = 0;
  attr.coherence = decision.coherence;
  attr.reason = decision.reason;
  attr.line_size = cpu.line_size_bytes;
  attr.writeback_granule = cpu.writeback_granule_bytes;
  attr.sync_for_device_required = !coherent;
  attr.sync_for_cpu_required = !coherent;
  attr.sync_supported = coherent || cpu_can;
  attr.sync_complete = attr.sync_supported && decision.coherence != DAPPLEDV_COHERENCE_NONCOHERENT_IO;
  attr.reserved = 0;
  attr.clean_instruction = cpu.clean_instruction;
  attr.clean_invalidate_instruction = cpu.clean_invalidate_instruction;
  attr.explanation = decision.explanation;
}

}  // namespace dapple::provider
