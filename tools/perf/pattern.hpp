// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::perf {

// Bytes that depend on their place and a seed.
void fill(unsigned char* memory, size_t size, uint64_t seed);
// Throws Failure with the first wrong byte. what: the source of the bytes.
void verify(const unsigned char* memory, size_t size, uint64_t seed, const char* what);

}  // namespace dapple::perf
