// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The original provider's tuning variables that have a meaning over rdma_cm. They are read once, when an IA is opened.
#pragma once

#include <cstdint>

#include "ibverbs-glue/verbs.hpp"

namespace dapple::udapl {

struct Settings {
  uint8_t retry_count = 7;          // DAPL_ACK_RETRY: transport retries
  uint8_t rnr_retry_count = 7;      // DAPL_RNR_RETRY: 7 means no limit
  uint8_t min_rnr_timer = 12;       // DAPL_RNR_TIMER: IBTA code; 12 is 0.64 ms
  int ack_timeout = -1;             // DAPL_ACK_TIMER: IBTA code; -1 keeps the connection manager's value
  int traffic_class = -1;           // DAPL_CM_TOS, else DAPL_TCLASS
  int service_level = -1;           // DAPL_IB_SL
  int hop_limit = -1;               // DAPL_HOP_LIMIT
  ibv_mtu path_mtu = IBV_MTU_4096;  // DAPL_IB_MTU, in bytes: the largest of a connection
  uint32_t max_dtos = UINT32_MAX;   // DAPL_WR_MAX: for either direction of an EP, if lower than the device's limit
  uint32_t max_inline_bytes = 64;   // DAPL_MAX_INLINE
  int arp_timeout_ms = 4000;        // DAPL_CM_ARP_TIMEOUT_MS
  int arp_retries = 3;              // DAPL_CM_ARP_RETRY_COUNT
  int route_timeout_ms = 4000;      // DAPL_CM_ROUTE_TIMEOUT_MS
  int route_retries = 3;            // DAPL_CM_ROUTE_RETRY_COUNT

  // A value that is not a number or out of range is reported once and replaced by the default.
  static Settings from_environment();
};

}  // namespace dapple::udapl
