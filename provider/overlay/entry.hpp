// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_OVERLAY_ENTRY_HPP
#define DAPPLE_PROVIDER_OVERLAY_ENTRY_HPP

#include <infiniband/dappledv.h>

namespace dapple::provider {

// As dappledv_attach(). A refusal is said on standard error, and not repeated while its cause stays the same.
int attach_loaded(ibv_context* context, uint64_t flags) noexcept;

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_OVERLAY_ENTRY_HPP
