// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_ADDRESSES_HPP
#define DAPPLE_PROVIDER_SOFT_ADDRESSES_HPP

#include <stdint.h>

namespace dapple::soft {

// The two ends of packets, as GIDs: IPv4 as ::ffff:a.b.c.d.
struct Addresses {
  uint8_t source[16] = {};
  uint8_t destination[16] = {};
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_ADDRESSES_HPP
