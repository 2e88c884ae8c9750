// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/decision.hpp"

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
    case DAPPLEDV_COHERENCE_BOUNCED:
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
    case DAPPLEDV_COHERENCE_BOUNCED:
      break;
  }
  return "override: the configuration";
}

constexpr Decision coherent(dappledv_reason reason, const char* explanation) {
  return {DAPPLEDV_COHERENCE_COHERENT, reason, explanation};
}

constexpr Decision unknown(const char* explanation) {
  return {DAPPLEDV_COHERENCE_UNKNOWN, DAPPLEDV_REASON_ASSUMED, explanation};
}

Decision decide_arm64(const Facts& facts) {
  switch (facts.firmware) {
    case Firmware::kNoProperty:
      return {DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_ARCHITECTURE,
              "architecture: an arm64 device is not coherent unless its devicetree says so, and it does not"};
    case Firmware::kAcpi:
      return coherent(
          DAPPLEDV_REASON_ASSUMED,
          "assumed: most arm64 machines with ACPI are coherent, and no file that users may read tells more");
    case Firmware::kUnreadable:
      return unknown("unknown: the description of the arm64 machine cannot be read here, or lacks the device");
    default:
      return unknown("unknown: the device is neither in a devicetree nor in ACPI");
  }
}

Decision decide_riscv64(const Facts& facts) {
  if (facts.firmware == Firmware::kUnreadable) {
    return unknown("unknown: the description of the riscv64 machine cannot be read here, or lacks the device");
  }
  return coherent(DAPPLEDV_REASON_ARCHITECTURE,
                  "architecture: DMA is coherent on riscv64 unless firmware says otherwise, and it does not");
}

Decision decide_by_architecture(const Facts& facts) {
  switch (facts.architecture) {
    case Architecture::kX86:
      return coherent(
          DAPPLEDV_REASON_ARCHITECTURE,
          "architecture: x86 keeps DMA coherent unless it is bounced, and the device reports no bounced DMA");
    case Architecture::kPpc64le:
      return coherent(
          DAPPLEDV_REASON_ARCHITECTURE,
          "architecture: ppc64le keeps DMA coherent unless it is bounced, and the device reports no bounced DMA");
    case Architecture::kS390x:
      return coherent(
          DAPPLEDV_REASON_ARCHITECTURE,
          "architecture: s390x keeps DMA coherent unless it is bounced, and the device reports no bounced DMA");
    case Architecture::kRiscv64:
      return decide_riscv64(facts);
    case Architecture::kArm64:
      return decide_arm64(facts);
    case Architecture::kOther:
      break;
  }
  return unknown("unknown: no source says that DMA is coherent, so dapple assumes that it is not");
}

// Decides if neither an override nor the kernel does.
Decision decide_by_description(const Facts& facts) {
  if (facts.firmware == Firmware::kCoherent) {
    return coherent(DAPPLEDV_REASON_FIRMWARE, "firmware: the devicetree says dma-coherent, and the kernel believes it");
  }
  if (facts.firmware == Firmware::kNoncoherent) {
    return {DAPPLEDV_COHERENCE_NONCOHERENT_CPU, DAPPLEDV_REASON_FIRMWARE,
            "firmware: the devicetree says dma-noncoherent, and the kernel believes it"};
  }
  return decide_by_architecture(facts);
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
  if (facts.bounced) {
    return {DAPPLEDV_COHERENCE_BOUNCED, DAPPLEDV_REASON_KERNEL,
            "kernel: DMA of this confidential guest is bounced, so the device sees only memory from ibv_alloc_buf()"};
  }
  if (facts.registration == Registration::kAccepted) {
    return coherent(DAPPLEDV_REASON_KERNEL,
                    "kernel: it registers only coherent memory, and has registered a page for this device");
  }
  const Decision weaker = decide_by_description(facts);
  if (facts.registration == Registration::kRefused && weaker.coherence == DAPPLEDV_COHERENCE_COHERENT) {
    return unknown(
        "unknown: the kernel refuses to register a page for the device, and no equally strong source says that it is "
        "coherent");
  }
  return weaker;
}

dappledv_certainty certainty_of(dappledv_reason reason) {
  switch (reason) {
    case DAPPLEDV_REASON_NONE:
      break;
    case DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT:
    case DAPPLEDV_REASON_OVERRIDE_PARAMETER:
    case DAPPLEDV_REASON_OVERRIDE_REGION:
    case DAPPLEDV_REASON_EMULATOR:
      return DAPPLEDV_CERTAINTY_OVERRIDE;
    case DAPPLEDV_REASON_SOFTWARE_DEVICE:
    case DAPPLEDV_REASON_KERNEL:
    case DAPPLEDV_REASON_DMABUF:
      return DAPPLEDV_CERTAINTY_KERNEL;
    case DAPPLEDV_REASON_FIRMWARE:
      return DAPPLEDV_CERTAINTY_FIRMWARE;
    case DAPPLEDV_REASON_ARCHITECTURE:
      return DAPPLEDV_CERTAINTY_ARCHITECTURE;
    case DAPPLEDV_REASON_ASSUMED:
      return DAPPLEDV_CERTAINTY_ASSUMED;
  }
  return DAPPLEDV_CERTAINTY_NONE;
}

void fill_cpu(const coherence::CpuDescription& cpu, dappledv_device_attr& attr) {
  attr.line_size = cpu.line_size_bytes;
  attr.writeback_granule = cpu.writeback_granule_bytes;
  attr.clean_instruction = cpu.clean_instruction;
  attr.clean_invalidate_instruction = cpu.clean_invalidate_instruction;
  attr.refusal = cpu.refusal;
}

}  // namespace dapple::provider
