// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Who decides about a device's coherence, in which order. Pure functions.
#ifndef DAPPLE_PROVIDER_DECISION_HPP
#define DAPPLE_PROVIDER_DECISION_HPP

#include <infiniband/dappledv.h>

#include <optional>

#include "coherence/cache.hpp"

namespace dapple::provider {

enum class Architecture { kX86, kArm64, kRiscv64, kPpc64le, kS390x, kOther };

// The one this was compiled for.
Architecture this_architecture();

struct Facts {
  std::optional<dappledv_coherence> environment;
  std::optional<dappledv_coherence> parameter;
  bool software_device;
  Architecture architecture;
};

struct Decision {
  dappledv_coherence coherence;
  dappledv_reason reason;
  const char* explanation;  // static
};

// The first that has an answer: environment, parameter, software device, architecture. Else unknown.
Decision decide(const Facts& facts);

// Fills attr for a decision on a machine with this CPU. Bits of comp_mask are cleared: no field beyond the base exists
// yet.
void fill_device_attr(const Decision& decision, const coherence::CpuDescription& cpu, dappledv_device_attr& attr);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_DECISION_HPP
