// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The invariant CRC of RoCEv2 (IBTA annex 17): CRC-32 over the fields that no router changes. Fields that a router may
// change count as ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dapple::roce {

// CRC-32 of Ethernet, reflected, without initial or final inversion: crc(crc(seed, a), b) == crc(seed, a + b).
using Crc32 = uint32_t (*)(uint32_t seed, const std::byte* bytes, size_t size);

// The fields that the ICRC takes from the headers below the BTH. Addresses in network byte order, ports in the host's.
struct IcrcAddresses {
  bool ipv6 = false;
  uint8_t source[16] = {};  // IPv4: the first four bytes
  uint8_t destination[16] = {};
  uint16_t source_port = 0;
  uint16_t destination_port = 4791;
  uint16_t identification = 0;  // IPv4, with "don't fragment"

  bool operator==(const IcrcAddresses&) const = default;
};

// The part of the ICRC that comes before the BTH: the same for all packets of one size between two ends.
// transport_size: from the BTH to the pad, without the ICRC.
uint32_t icrc_prefix(const IcrcAddresses& addresses, size_t transport_size, Crc32 crc);

// The ICRC in the byte order in which it is stored behind the pad. `transport`: from the BTH to the pad.
uint32_t icrc_of(uint32_t prefix, std::span<const std::byte> transport, Crc32 crc);

// A receiver at a plain UDP socket cannot see the IPv4 identification. CRC is linear, so the difference between the
// ICRC that came and the one computed for identification 0 shows which identification the sender must have used.
// Returns it, or -1 if none of the 65,536 explains the difference: then bytes are damaged. This takes a few nanoseconds
// if transport_size is a multiple of four.
int32_t icrc_identification(uint32_t received, uint32_t computed_for_zero, size_t transport_size);

}  // namespace dapple::roce
