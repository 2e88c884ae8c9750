// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/packet/crc.hpp"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dapple::soft {
namespace {

#if defined(__x86_64__)
// isa-l leaves the upper halves of vector registers dirty. The next SSE instruction then costs some 100 cycles, which
// is as much as the CRC of a kilobyte.
[[gnu::target("avx")]] void clean_upper_halves() {
  _mm256_zeroupper();
}

const bool kHasUpperHalves = __builtin_cpu_supports("avx");
#endif

}  // namespace

uint32_t crc32(uint32_t seed, const std::byte* bytes, size_t size) {
  // isa-l inverts before and after, as gzip does.
  const uint32_t crc = ~crc32_gzip_refl(~seed, reinterpret_cast<const unsigned char*>(bytes), size);
#if defined(__x86_64__)
  if (kHasUpperHalves) clean_upper_halves();
#endif
  return crc;
}

}  // namespace dapple::soft
