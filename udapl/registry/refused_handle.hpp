// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/registry/common/dat.hpp"

namespace dapple::registry {

/// The error of a call whose handle reaches no provider. Under dapple-run --explain and --check the call is reported,
/// as a provider's errors are. function: its name. Any thread.
[[gnu::cold, gnu::noinline]] DAT_RETURN refuse_handle(const char* function, DAT_HANDLE handle,
                                                      DAT_RETURN_SUBTYPE subtype) noexcept;

}  // namespace dapple::registry
