// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The decision about a device's coherence: the sources and their order. Pure functions.
#pragma once

#include <infiniband/dappledv.h>

#include <optional>

#include "coherence/cache.hpp"
#include "provider/device/machine/firmware.hpp"
#include "provider/device/registration.hpp"

namespace dapple::provider {

enum class Architecture { kX86, kArm64, kRiscv64, kPpc64le, kS390x, kOther };

// The architecture of this build.
Architecture this_architecture();

struct Facts {
  std::optional<dappledv_coherence> environment;
  std::optional<dappledv_coherence> parameter;
  bool software_device = false;  // by its driver
  bool bounced = false;          // the device reports that its DMA is bounced
  Registration registration = Registration::kNotAsked;
  Firmware firmware = Firmware::kUnreadable;
  Architecture architecture = Architecture::kOther;
};

struct Decision {
  dappledv_coherence coherence;
  dappledv_reason reason;
  const char* explanation;  // static
};

// The first source with an answer decides: environment, parameter, software device, bounced DMA, a registration that
// the kernel accepted, firmware, architecture, assumption. Otherwise unknown. After a refused registration no later
// source can decide "coherent".
Decision decide(const Facts& facts);

dappledv_certainty certainty_of(dappledv_reason reason);

// Fills the fields that follow from a decision on a machine with this CPU, for a device or a region; other fields do
// not change.
template <class Attr>
void fill_coherence(const Decision& decision, const coherence::CpuDescription& cpu, Attr& attr) {
  const bool is_coherent = decision.coherence == DAPPLEDV_COHERENCE_COHERENT;
  const bool cpu_can = cpu.can_clean && cpu.can_clean_invalidate;
  attr.coherence = decision.coherence;
  attr.reason = decision.reason;
  attr.certainty = certainty_of(decision.reason);
  attr.explanation = decision.explanation;
  attr.sync_for_device_required = !is_coherent;
  attr.sync_for_cpu_required = !is_coherent;
  attr.sync_supported = is_coherent || (cpu_can && decision.coherence != DAPPLEDV_COHERENCE_BOUNCED);
  attr.sync_complete = attr.sync_supported && decision.coherence != DAPPLEDV_COHERENCE_NONCOHERENT_IO;
}

// The fields about the CPU.
void fill_cpu(const coherence::CpuDescription& cpu, dappledv_device_attr& attr);

}  // namespace dapple::provider
