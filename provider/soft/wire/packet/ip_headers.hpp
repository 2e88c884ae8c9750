// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// IP and UDP headers as bytes, which UDP sockets do not show: for the GRH of datagrams and for files of packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "roce/packet/icrc.hpp"

namespace dapple::soft {

inline constexpr size_t kIpv4HeaderSize = 20;
inline constexpr size_t kIpv6HeaderSize = 40;
inline constexpr size_t kUdpHeaderSize = 8;

// Returns the header's size. `udp_size`: with the UDP header.
size_t write_ip_header(std::byte* to, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
                       size_t udp_size);

// The UDP header in front of `payload`, with its checksum.
void write_udp_header(std::byte* to, const roce::IcrcAddresses& addresses, std::span<const std::byte> payload);

// IBTA A17.4.5.1: the 40 bytes in front of a datagram that was received; an IPv4 header fills the last 20.
void write_grh(std::byte* to, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
               size_t udp_size);

}  // namespace dapple::soft
