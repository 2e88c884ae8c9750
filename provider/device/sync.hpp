// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The sync calls over a given CPU's operations, so that tests can count the lines that they touch.
#pragma once

#include <infiniband/dappledv.h>

#include "coherence/cache.hpp"

namespace dapple::provider {

enum class SyncDirection { kForDevice, kForCpu };

// As dappledv_sync_for_device() and dappledv_sync_for_cpu().
int sync_region(const coherence::BackEnd& back_end, SyncDirection direction, const dappledv_region_attr& region,
                const iovec* ranges, size_t num_ranges) noexcept;

// The part of these calls that makes CPU and device agree about memory that the CPU maintains.
void sync_for_device(const coherence::BackEnd& back_end, dappledv_coherence coherence, const iovec* ranges,
                     size_t num_ranges) noexcept;
void sync_for_cpu(const coherence::BackEnd& back_end, dappledv_coherence coherence, const iovec* ranges,
                  size_t num_ranges) noexcept;

}  // namespace dapple::provider
