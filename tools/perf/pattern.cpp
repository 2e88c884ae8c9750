// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/pattern.hpp"

#include <fmt/format.h>

#include "tools/perf/common/failure.hpp"

namespace dapple::perf {
namespace {

// The byte differs from its neighbours, from the same place with the next seed, and from the same place of the next
// page.
unsigned char byte_at(size_t place, uint64_t seed) {
  return static_cast<unsigned char>(place * 167 + (place >> 8) * 13 + (place >> 16) * 7 + seed * 101 + 1);
}

}  // namespace

void fill(unsigned char* memory, size_t size, uint64_t seed) {
  for (size_t i = 0; i < size; ++i) memory[i] = byte_at(i, seed);
}

void verify(const unsigned char* memory, size_t size, uint64_t seed, const char* what) {
  for (size_t i = 0; i < size; ++i) {
    if (memory[i] == byte_at(i, seed)) continue;
    throw Failure(fmt::format("{} of {} bytes: byte {} is {:#04x} instead of {:#04x}", what, size, i, memory[i],
                              byte_at(i, seed)));
  }
}

}  // namespace dapple::perf
