// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/settings.hpp"

#include <cerrno>
#include <cstdlib>

#include "udapl/core/log.hpp"

namespace dapple::dat {
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
  read("DAPL_MAX_INLINE", 0, 65536, s.max_inline_bytes);
  read("DAPL_CM_ARP_TIMEOUT_MS", 1, kHour_ms, s.arp_timeout_ms);
  read("DAPL_CM_ARP_RETRY_COUNT", 0, 1000, s.arp_retries);
  read("DAPL_CM_ROUTE_TIMEOUT_MS", 1, kHour_ms, s.route_timeout_ms);
  read("DAPL_CM_ROUTE_RETRY_COUNT", 0, 1000, s.route_retries);
  return s;
}

}  // namespace dapple::dat
