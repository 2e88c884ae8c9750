// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappledv_mark_free() and dappledv_mark_used(): the software device's plug-in carries them out.
#pragma once

#include <stddef.h>

namespace dapple::provider {

// Does nothing without dapple-run --check, and before libibverbs has loaded the plug-in: no memory is registered then.
void mark_memory(const void* memory, size_t size, bool is_free);

}  // namespace dapple::provider
