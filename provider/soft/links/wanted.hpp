// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>
#include <string.h>

#include "provider/common/settings.hpp"
#include "provider/protocol/transport.hpp"

namespace dapple::soft {

// False if DAPPLE_SAME_HOST is "off": packets of one host take UDP, too.
inline bool same_host_wanted() {
  const char* wish = provider::settings().same_host;
  return wish == nullptr || strcmp(wish, "off") != 0;
}

// kSharedMemory, or the reason against it. `instrumented`: as Wire::instrumented().
inline Transport same_host_transport(bool instrumented) {
  if (!same_host_wanted()) return Transport::kSwitchedOff;
  if (!instrumented) return Transport::kSharedMemory;
  return provider::settings().pcap != nullptr ? Transport::kCapture : Transport::kFaults;
}

inline constexpr uint64_t kMaxRingBytes = uint64_t{256} << 20;

// The cap of a process' rings. False if DAPPLE_SAME_HOST_MIB is not a number of MiB.
inline bool most_ring_bytes(uint64_t& bytes) {
  bytes = kMaxRingBytes;
  const char* wish = provider::settings().same_host_mib;
  if (wish == nullptr) return true;
  constexpr uint64_t kMaxMib = uint64_t{1} << 30;
  uint64_t mib = 0;
  for (; *wish >= '0' && *wish <= '9' && mib <= kMaxMib; wish++) mib = 10 * mib + static_cast<uint64_t>(*wish - '0');
  bytes = mib << 20;
  return *wish == '\0' && mib <= kMaxMib;
}

}  // namespace dapple::soft
