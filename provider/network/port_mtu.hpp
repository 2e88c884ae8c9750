// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The path MTU that fits into a netdev's.
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include <initializer_list>

namespace dapple::soft {

// Room for IPv6, UDP, BTH, the largest extended headers and the ICRC.
inline constexpr uint32_t kHeaderRoom = 80;

constexpr uint32_t mtu_bytes(ibv_mtu mtu) {
  return 128u << static_cast<unsigned>(mtu);
}

// The largest RoCE MTU that fits; the smallest if none does.
constexpr ibv_mtu roce_mtu(uint32_t netdev_mtu) {
  for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_2048, IBV_MTU_1024, IBV_MTU_512}) {
    if (mtu_bytes(mtu) + kHeaderRoom <= netdev_mtu) return mtu;
  }
  return IBV_MTU_256;
}

constexpr uint32_t roce_mtu_bytes(uint32_t netdev_mtu) {
  return mtu_bytes(roce_mtu(netdev_mtu));
}

static_assert(roce_mtu(1500) == IBV_MTU_1024 && roce_mtu(4176) == IBV_MTU_4096 && roce_mtu(4175) == IBV_MTU_2048);
static_assert(mtu_bytes(IBV_MTU_256) == 256 && mtu_bytes(IBV_MTU_4096) == 4096);

}  // namespace dapple::soft
