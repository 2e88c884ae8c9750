// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's choices, which peers and programs may rely on.
#pragma once

#include <cstdint>

namespace dapple::dappled::rdma_cm {

inline constexpr uint8_t kPort = 1;
inline constexpr uint8_t kResponseTimeout = 20;
inline constexpr uint8_t kMaxRetries = 15;
inline constexpr uint8_t kHopLimit = 64;
inline constexpr uint8_t kLifetime = 16;          // of packets over RoCE: 268 ms
inline constexpr uint32_t kUdpQkey = 0x01234567;  // RDMA_UDP_QKEY
inline constexpr uint8_t kAckDelay = 15;          // as in ibv_query_device()
inline constexpr uint16_t kUnprivilegedPort = 1024;
// The kernel's cma reserves this many bytes more for headers than the device does.
inline constexpr uint32_t kMoreHeaders = 16;

}  // namespace dapple::dappled::rdma_cm
