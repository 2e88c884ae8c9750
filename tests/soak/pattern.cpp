// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/pattern.hpp"

#include <string.h>

#include <algorithm>

#include "tests/soak/random.hpp"

namespace dapple::soak {

void fill(unsigned char* to, size_t size, uint64_t seed, uint64_t first) {
  for (size_t done = 0; done < size;) {
    const uint64_t word = mix(seed ^ mix((first + done) / 8));
    const size_t from = (first + done) % 8;
    const size_t count = std::min(8 - from, size - done);
    memcpy(to + done, reinterpret_cast<const unsigned char*>(&word) + from, count);
    done += count;
  }
}

size_t first_wrong(const unsigned char* memory, size_t size, uint64_t seed, uint64_t first) {
  unsigned char expected[256];
  for (size_t done = 0; done < size; done += sizeof expected) {
    const size_t count = std::min(sizeof expected, size - done);
    fill(expected, count, seed, first + done);
    if (memcmp(memory + done, expected, count) == 0) continue;
    const auto wrong = std::mismatch(expected, expected + count, memory + done);
    return done + static_cast<size_t>(wrong.first - expected);
  }
  return size;
}

}  // namespace dapple::soak
