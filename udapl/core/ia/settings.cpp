// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/ia/settings.hpp"

#include <cerrno>
#include <cstdlib>
#include <initializer_list>

#include "udapl/core/log.hpp"

namespace dapple::udapl {
namespace {

template <class T>
void read(const char* name, long low, long high, T& value) {
  const char* text = std::getenv(name);
  if (!text || !*text) return;
  char* end = nullptr;
  errno = 0;
  const long number = std::strtol(text, &end, 0);
  if (errno || *end || number < low || number > high) {
    log_error("%s=%s ignored: it must be a number from %ld to %ld", name, text, low, high);
    return;
  }
  value = static_cast<T>(number);
}

// An MTU in bytes; IBTA has five sizes.
void read_mtu(const char* name, ibv_mtu& value) {
  long bytes = 0;
  read(name, 256, 4096, bytes);
  if (bytes == 0) return;
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (bytes != 128L << mtu) continue;
    value = mtu;
    return;
  }
  log_error("%s=%ld ignored: it must be 256, 512, 1024, 2048 or 4096", name, bytes);
}

}  // namespace

Settings Settings::from_environment() {
  constexpr long kHour_ms = 3'600'000;
  Settings s;
  read("DAPL_ACK_RETRY", 0, 7, s.retry_count);
  read("DAPL_RNR_RETRY", 0, 7, s.rnr_retry_count);
  read("DAPL_RNR_TIMER", 0, 31, s.min_rnr_timer);
  read("DAPL_ACK_TIMER", 0, 31, s.ack_timeout);
  read("DAPL_TCLASS", 0, 255, s.traffic_class);
  read("DAPL_CM_TOS", 0, 255, s.traffic_class);
  read("DAPL_IB_SL", 0, 15, s.service_level);
  read("DAPL_HOP_LIMIT", 0, 255, s.hop_limit);
  read_mtu("DAPL_IB_MTU", s.path_mtu);
  read("DAPL_WR_MAX", 1, INT32_MAX, s.max_dtos);
  read("DAPL_MAX_INLINE", 0, 65536, s.max_inline_bytes);
  read("DAPL_CM_ARP_TIMEOUT_MS", 1, kHour_ms, s.arp_timeout_ms);
  read("DAPL_CM_ARP_RETRY_COUNT", 0, 1000, s.arp_retries);
  read("DAPL_CM_ROUTE_TIMEOUT_MS", 1, kHour_ms, s.route_timeout_ms);
  read("DAPL_CM_ROUTE_RETRY_COUNT", 0, 1000, s.route_retries);
  return s;
}

}  // namespace dapple::udapl
