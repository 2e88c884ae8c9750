// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stddef.h>
#include <unistd.h>

namespace dapple::provider {

// The kernel maps and unmaps whole pages: 4 KiB on x86-64, 64 KiB on some machines.
inline const auto kKernelPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

}  // namespace dapple::provider
