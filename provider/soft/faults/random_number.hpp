// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soft {

// Each use has a sequence of its own, so that one of them does not change the numbers of another.
enum class RandomUse : uint8_t { kQueuePairNumbers, kKeys, kSourcePorts, kCount };

// The next number of this process for the use: by DAPPLE_SEED if it is set, or else the kernel's. Any thread.
uint32_t random_number(RandomUse use);

}  // namespace dapple::soft
