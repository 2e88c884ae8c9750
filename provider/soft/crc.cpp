// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/crc.hpp"

#include <isa-l/crc.h>

namespace dapple::soft {

uint32_t crc32(uint32_t seed, const std::byte* bytes, size_t size) {
  // isa-l inverts before and after, as gzip does.
  return ~crc32_gzip_refl(~seed, reinterpret_cast<const unsigned char*>(bytes), size);
}

}  // namespace dapple::soft
