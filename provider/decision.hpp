// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Who decides about a device's coherence, in which order. Pure functions.
#ifndef DAPPLE_PROVIDER_DECISION_HPP
#define DAPPLE_PROVIDER_DECISION_HPP

#include <infiniband/dappledv.h>

#include <optional>

#include "coherence/cache.hpp"
#include "provider/firmware.hpp"
#include "provider/registration.hpp"

namespace dapple::provider {

enum class Architecture { kX86, kArm64, kRiscv64, kPpc64le, kS390x, kOther };

// The one this was compiled for.
Architecture this_architecture();

struct Facts {
  std::optional<dappledv_coherence> environment;
  std::optional<dappledv_coherence> parameter;
  bool software_device = false;
  Registration registration = Registration::kNotAsked;
  Firmware firmware = Firmware::kUnreadable;
  Architecture architecture = Architecture::kOther;
};

struct Decision {
  dappledv_coherence coherence;
  dappledv_reason reason;
  const char* explanation;  // static
};

// The first that has an answer: environment, parameter, software device, kernel, firmware, architecture, what is
// assumed. Else unknown.
Decision decide(const Facts& facts);

dappledv_certainty certainty_of(dappledv_reason reason);

// Fills what follows from a decision on a machine with this CPU; all other fields are left alone.
void fill_decision(const Decision& decision, const coherence::CpuDescription& cpu, dappledv_device_attr& attr);

// As dappledv_override_region().
int override_region(const coherence::CpuDescription& cpu, const dappledv_device_attr* device,
                    dappledv_coherence coherence, dappledv_device_attr* region) noexcept;

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_DECISION_HPP
