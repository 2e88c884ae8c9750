// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that is to outlive a power cut.
#ifndef DAPPLE_PROVIDER_PERSISTENCE_HPP
#define DAPPLE_PROVIDER_PERSISTENCE_HPP

#include <infiniband/dappledv.h>

#include "coherence/persistence.hpp"
#include "provider/files.hpp"

namespace dapple::provider {

// Fills the fields of DAPPLEDV_DEVICE_ATTR_PERSISTENCE, and caches_persistent. root: the folder that holds sys.
void fill_persistence(const coherence::CpuDescription& cpu, const Path& root, dappledv_device_attr& attr);

// As dappledv_persist_region(), on a machine of which persistence is known.
int persist_region(const coherence::Persistence& persistence, const dappledv_device_attr* device,
                   dappledv_device_attr* region) noexcept;

// Brings what this thread has written to the ranges, or has seen the device write there, to where it outlives a power
// cut, and waits. Only where persistence.possible.
void persist_ranges(const coherence::BackEnd& back_end, const coherence::Persistence& persistence, const iovec* ranges,
                    size_t num_ranges) noexcept;

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_PERSISTENCE_HPP
