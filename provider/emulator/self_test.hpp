// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_EMULATOR_SELF_TEST_HPP
#define DAPPLE_PROVIDER_EMULATOR_SELF_TEST_HPP

#include <infiniband/verbs.h>

namespace dapple::provider {

// Registers memory under the address of other memory (its IOVA), lets the device write to that address, over a queue
// pair that is connected to itself, and looks where the bytes are. Null if they are in the memory that was registered;
// else one line for people. Some devices take an IOVA and ignore it, without a word, and no attribute tells. Takes
// milliseconds, and ten seconds at most per address of the device where nothing arrives.
const char* fails_iova_test(ibv_context* context);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_SELF_TEST_HPP
