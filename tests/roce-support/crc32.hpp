// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A portable roce::Crc32, eight bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dapple::roce::test {

uint32_t crc32(uint32_t seed, const std::byte* bytes, size_t size);

}  // namespace dapple::roce::test
