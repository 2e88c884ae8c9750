// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that must survive a loss of power.
#pragma once

#include <infiniband/dappledv.h>

#include <optional>

#include "coherence/persistence.hpp"
#include "provider/device/machine/files.hpp"

namespace dapple::provider {

// Fills persist_supported, persist_instruction and caches_persistent. root: the folder that holds sys. said: the value
// of DAPPLE_PERSISTENCE, which replaces the kernel's report in that folder.
void fill_persistence(const coherence::CpuDescription& cpu, const Path& root, std::optional<dappledv_persistence> said,
                      dappledv_device_attr& attr);

// Brings data in the ranges that this thread has written, or has seen the device write, to the domain, and waits. The
// domain is not DAPPLEDV_PERSISTENCE_UNSPECIFIED, and the CPU can reach it.
void persist_ranges(const coherence::BackEnd& back_end, dappledv_persistence domain, const iovec* ranges,
                    size_t num_ranges) noexcept;

}  // namespace dapple::provider
