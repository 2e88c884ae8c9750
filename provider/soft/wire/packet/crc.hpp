// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::soft {

// roce::Crc32 by the processor's carry-less multiplication, if it has one.
uint32_t crc32(uint32_t seed, const std::byte* bytes, size_t size);

}  // namespace dapple::soft
