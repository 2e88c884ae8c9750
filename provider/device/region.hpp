// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The attributes of a piece of memory: the functions of dappledv.h, with the CPU and the machine as arguments.
#pragma once

#include <infiniband/dappledv.h>

#include <optional>

#include "coherence/persistence.hpp"

namespace dapple::provider {

int init_region(const dappledv_device_attr* device, dappledv_region_attr* region) noexcept;

int override_region(const coherence::CpuDescription& cpu, dappledv_region_attr* region,
                    dappledv_coherence coherence) noexcept;

// said: from DAPPLE_PERSISTENCE. domain: the kernel's report; both count only if the caller names no domain.
int persist_region(const coherence::CpuDescription& cpu, coherence::PersistenceDomain domain,
                   std::optional<dappledv_persistence> said, dappledv_region_attr* region,
                   dappledv_persistence wanted) noexcept;

int dmabuf_region(dappledv_region_attr* region, int fd) noexcept;

// EINVAL, with its reason.
int refuse_null_region() noexcept;

}  // namespace dapple::provider
