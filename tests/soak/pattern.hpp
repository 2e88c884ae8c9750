// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::soak {

// Writes the bytes from `first` on of the endless pattern that belongs to the seed.
void fill(unsigned char* to, size_t size, uint64_t seed, uint64_t first = 0);

// The place of the first byte that differs from the pattern; `size` if there is none.
size_t first_wrong(const unsigned char* memory, size_t size, uint64_t seed, uint64_t first = 0);

}  // namespace dapple::soak
