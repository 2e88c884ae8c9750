// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

namespace dapple::provider {

// Registers memory under the address of other memory (its IOVA), lets the device write to that address, over a queue
// pair that is connected to itself, and checks where the bytes are. Returns null if they are in the registered memory,
// otherwise the reason in one static line for people. Some devices accept an IOVA and silently ignore it, and no
// attribute shows this. Takes milliseconds, and at most ten seconds for each address of the device if no byte arrives.
const char* fails_iova_test(ibv_context* context);

}  // namespace dapple::provider
