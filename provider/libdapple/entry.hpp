// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/dappledv.h>

namespace dapple::provider {

// Like dappledv_attach(). Reports a refusal on standard error, and does not repeat it while its cause stays the same.
int attach_loaded(ibv_context* context, uint64_t flags) noexcept;

}  // namespace dapple::provider
