// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA IP CM service (IBTA A11): service ids that stand for ports, and the header in front of the consumer's
// private data in a REQ or a SIDR REQ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "roce/cm/mad.hpp"

namespace dapple::roce::cm {

// The numbers are librdmacm's (enum rdma_port_space).
enum class PortSpace : uint16_t { kTcp = 0x0106, kUdp = 0x0111, kIb = 0x013F };

constexpr uint64_t service_id_of(PortSpace space, uint16_t port) {
  return static_cast<uint64_t>(space) << 16 | port;
}

// Tells whether the service belongs to the IP CM service, so that its requests have an IpHeader.
constexpr bool is_ip_service(uint64_t service_id) {
  return service_id >> 24 == 1;
}

constexpr uint16_t port_of(uint64_t service_id) {
  return static_cast<uint16_t>(service_id);
}

inline constexpr size_t kIpHeaderSize = 36;
// Bytes that are left for the consumer.
inline constexpr size_t kReqConsumerSize = sizeof(Req::private_data) - kIpHeaderSize;
inline constexpr size_t kSidrReqConsumerSize = sizeof(SidrReq::private_data) - kIpHeaderSize;
static_assert(kReqConsumerSize == 56 && kSidrReqConsumerSize == 180);

struct IpHeader {
  bool ipv6 = false;
  uint16_t source_port = 0;
  // An IPv4 address in the form of GIDs, ::ffff:a.b.c.d.
  Gid source{};
  Gid destination{};

  bool operator==(const IpHeader&) const = default;
};

bool is_ipv4(const Gid& address);

// False if the bytes are not such a header, of version 0, for IPv4 or IPv6.
bool read_ip_header(std::span<const std::byte> private_data, IpHeader& header);
// `private_data` has room for kIpHeaderSize bytes.
void write_ip_header(const IpHeader& header, std::span<std::byte> private_data);

}  // namespace dapple::roce::cm
