// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::provider {

// An exported function of the software device's plug-in, if libibverbs has loaded it into this process; otherwise null.
// The plug-in stays loaded until the process ends.
void* find_in_plugin(const char* name);

}  // namespace dapple::provider
