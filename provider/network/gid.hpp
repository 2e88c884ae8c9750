// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <cstring>

namespace dapple::soft {

inline constexpr uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

// GIDs of IPv4 addresses are ::ffff:a.b.c.d.
inline bool is_ipv4(const uint8_t gid[16]) {
  return memcmp(gid, kMappedPrefix, sizeof kMappedPrefix) == 0;
}
inline bool is_link_local(const uint8_t gid[16]) {
  return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}
inline bool is_multicast(const uint8_t gid[16]) {
  return is_ipv4(gid) ? (gid[12] & 0xF0) == 0xE0 : gid[0] == 0xFF;
}
inline bool is_loopback(const uint8_t gid[16]) {
  constexpr uint8_t kIpv6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return is_ipv4(gid) ? gid[12] == 127 : memcmp(gid, kIpv6, sizeof kIpv6) == 0;
}
// The GID that a RoCE device has even without addresses: link-local, of the netdev's MAC (RFC 4291, appendix A). `mac`
// is null for a netdev that has none.
inline void default_gid(const uint8_t* mac, uint8_t gid[16]) {
  memset(gid, 0, 16);
  gid[0] = 0xFE;
  gid[1] = 0x80;
  if (mac == nullptr) return;
  memcpy(gid + 8, mac, 3);
  memcpy(gid + 13, mac + 3, 3);
  gid[8] ^= 0x02;
  gid[11] = 0xFF;
  gid[12] = 0xFE;
}
inline void ipv4_gid(const void* address, uint8_t gid[16]) {
  memcpy(gid, kMappedPrefix, sizeof kMappedPrefix);
  memcpy(gid + sizeof kMappedPrefix, address, 4);
}

}  // namespace dapple::soft
