// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::tests {

// True if nothing of dappled is in this network namespace: no name, no socket on 4791.
bool nothing_left();
// The same within a minute.
bool ends_soon();

}  // namespace dapple::tests
