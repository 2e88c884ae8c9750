// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/dappledv.h>

#include "coherence/cache.hpp"
#include "provider/device/decision.hpp"
#include "provider/device/machine/files.hpp"

namespace dapple::provider {

// The machine's answers to a query, so that tests can imitate another machine.
struct Machine {
  const coherence::CpuDescription& cpu;
  Architecture architecture;
  Path root;                // the folder that holds sys and proc; "" for this machine
  const char* coherence;    // the value of DAPPLE_COHERENCE, or null
  const char* persistence;  // of DAPPLE_PERSISTENCE
};

Machine this_machine();

// EINVAL, with its reason, for a wrong value of DAPPLE_PERSISTENCE.
int refuse_persistence(const char* value) noexcept;

// An open device's answers to a query.
struct DeviceAnswers {
  bool software_driver = false;  // the kernel names a driver of software devices
  bool bounced = false;          // the device reports that its DMA is bounced
  Registration registration = Registration::kNotAsked;
};

// The overrides for a query. Each may be absent.
struct Overrides {
  std::optional<dappledv_coherence> environment;
  std::optional<dappledv_coherence> parameter;
  std::optional<dappledv_persistence> persistence;
};

// The attributes of a device of a machine. ibdev: its folder below class/infiniband. attr's former contents do not
// matter, and all its fields are filled.
void describe(const Machine& machine, const Path& ibdev, const Overrides& overrides, const DeviceAnswers& answers,
              dappledv_device_attr& attr);

// As dappledv_query_device_override(). The complaint about a malformed environment is printed once in the life of the
// process.
int query_device(const Machine& machine, ibv_context* context, const char* parameter,
                 dappledv_device_attr* attr) noexcept;

}  // namespace dapple::provider
