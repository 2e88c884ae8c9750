// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that is to outlive a power cut.
#ifndef DAPPLE_PROVIDER_PERSISTENCE_HPP
#define DAPPLE_PROVIDER_PERSISTENCE_HPP

#include <infiniband/dappledv.h>

#include <optional>

#include "coherence/persistence.hpp"
#include "provider/files.hpp"

namespace dapple::provider {

// Fills persist_supported, persist_instruction and caches_persistent. root: the folder that holds sys. said: by
// DAPPLE_PERSISTENCE, in place of what is found there.
void fill_persistence(const coherence::CpuDescription& cpu, const Path& root, std::optional<dappledv_persistence> said,
                      dappledv_device_attr& attr);

// Brings what this thread has written to the ranges, or has seen the device write there, to the domain, and waits. The
// domain is not DAPPLEDV_PERSISTENCE_UNSPECIFIED, and the CPU can reach it.
void persist_ranges(const coherence::BackEnd& back_end, dappledv_persistence domain, const iovec* ranges,
                    size_t num_ranges) noexcept;

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_PERSISTENCE_HPP
