// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>
#include <string.h>

namespace dapple::soft {

// The two ends of packets, as GIDs: IPv4 as ::ffff:a.b.c.d.
struct Addresses {
  uint8_t source[16] = {};
  uint8_t destination[16] = {};
};

inline bool same(const Addresses& a, const Addresses& b) {
  // A call of memcmp() would take longer.
  const auto word = [](const uint8_t* at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
  };
  const auto difference = [&](const uint8_t* x, const uint8_t* y) {
    return (word(x) ^ word(y)) | (word(x + 8) ^ word(y + 8));
  };
  return (difference(a.source, b.source) | difference(a.destination, b.destination)) == 0;
}

}  // namespace dapple::soft
