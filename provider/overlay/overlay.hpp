// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The overlay on open contexts of any provider: it keeps a table of each context's memory regions and asks a policy
// about them. It replaces the operations on regions and the closing of the context. The data path changes only if the
// policy has a transfer watch.
#pragma once

#include <infiniband/dappledv.h>

#include "coherence/cache.hpp"
#include "provider/common/policy.hpp"
#include "provider/device/sync.hpp"
#include "provider/private_api/library.hpp"

namespace dapple::provider {

struct AttachRequest {
  ibv_context* context;
  uint64_t flags;
  dappledv_device_attr attr;  // the device's attributes, for the sync calls
  RegionPolicy* policy;       // null for none; outlives the context
  VerbsLibrary library;
};

// Attaches the overlay to a context until the context is closed. Returns 0, also if it is attached with the same flags
// already. EBUSY: it is attached with other flags. ENOMEM. EOPNOTSUPP: *why is the reason, for people. An error changes
// nothing. No thread may use the context meanwhile.
int attach(const AttachRequest& request, const char** why) noexcept;

// The result that attach() would have with enough memory. Needs the context, the flags and the library of the request.
int check_attach(const AttachRequest& request, const char** why) noexcept;

// The reason why attach() would be refused, static; null if it would not be. context: null for the library alone.
const char* attach_obstacle(const VerbsLibrary& library, ibv_context* context) noexcept;

// True, and the device's attributes at attach(), if the context is attached with the emulator.
bool fill_if_emulated(const ibv_context* context, dappledv_device_attr* attr) noexcept;

// As dappledv_sync_mr_for_device() and dappledv_sync_mr_for_cpu(), with a given CPU's operations.
int sync_regions(const coherence::BackEnd& back_end, SyncDirection direction, ibv_context* context,
                 const ibv_sge* segments, size_t num_segments, size_t* bad_segment) noexcept;

}  // namespace dapple::provider
