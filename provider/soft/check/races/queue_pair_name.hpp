// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair among those of all hosts: its number, and the number of its host, which is a network namespace. Two
// queue pairs with one name count as one, so a race of theirs is missed.
#pragma once

#include <cstdint>

namespace dapple::soft::check {

using QueuePairName = uint64_t;

inline constexpr unsigned kQpnBits = 24;
inline constexpr uint64_t kHostMask = (uint64_t{1} << (64 - kQpnBits)) - 1;
// In the program itself. In a mark each host has its number.
inline constexpr uint64_t kThisHost = 0;

constexpr QueuePairName name_of(uint64_t host, uint32_t qpn) {
  return host << kQpnBits | (qpn & ((1U << kQpnBits) - 1));
}
constexpr uint32_t qpn_of(QueuePairName name) {
  return static_cast<uint32_t>(name) & ((1U << kQpnBits) - 1);
}
constexpr uint64_t host_of(QueuePairName name) {
  return name >> kQpnBits;
}

// From namespace_identity(). kThisHost if the system does not tell.
constexpr uint64_t host_number(uint64_t identity) {
  return (identity ^ identity >> 40) & kHostMask;
}

}  // namespace dapple::soft::check
