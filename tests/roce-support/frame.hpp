// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Whole RoCEv2 packets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "roce/packet/icrc.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::roce::test {

using Bytes = std::vector<std::byte>;

// From the BTH to the pad. headers.pad is set.
Bytes transport_of(Headers headers, std::span<const std::byte> payload);

// Ethernet, IP, UDP, `transport`, ICRC. UDP's checksum is 0, as rdma_rxe sends it.
Bytes frame_of(const IcrcAddresses& addresses, std::span<const std::byte> transport);

// 192.0.2.1 and 192.0.2.2, or 2001:db8::1 and 2001:db8::2; source port 0xC001.
IcrcAddresses sample_addresses(bool ipv6);

}  // namespace dapple::roce::test
