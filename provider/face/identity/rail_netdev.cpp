// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/rail_netdev.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "provider/face/identity/nearest.hpp"
#include "provider/face/identity/profile.hpp"
#include "provider/network/gid.hpp"

namespace dapple::face {

void RailNetdev::add(const uint8_t address[16]) {
  if (soft::is_link_local(address)) return;
  (soft::is_ipv4(address) ? ipv4 : ipv6)++;
}

bool check_rails(const soft::Rails& rails, std::span<const RailNetdev> netdevs, soft::Problem& problem) {
  if (rails.count == 0) return true;
  const std::string_view wanted(rails.netdev, strnlen(rails.netdev, sizeof rails.netdev));
  Nearest nearest(wanted);
  for (const RailNetdev& netdev : netdevs) {
    nearest.offer(netdev.name);
    if (wanted.empty() ? !netdev.loopback : netdev.name != wanted) continue;
    const uint32_t count = std::max(netdev.ipv4, netdev.ipv6);
    if (netdev.loopback || rails.count == 1 || count >= rails.count) return true;
    problem.set(EADDRNOTAVAIL,
                "%.15s has %u address%s, and %u devices need one each; add addresses, take %u device%s, or leave out "
                "netdev=%.15s to use lo",
                netdev.name.c_str(), count, count == 1 ? "" : "es", rails.count, std::max(count, 1U),
                count <= 1 ? "" : "s", netdev.name.c_str());
    return false;
  }
  const std::string_view best = nearest.best();
  problem.set(ENODEV, "there is no network device %.*s that can have devices%s%.*s", wanted.empty() ? 2 : shown(wanted),
              wanted.empty() ? "lo" : wanted.data(), best.empty() ? "" : "; the nearest is ", shown(best), best.data());
  return false;
}

}  // namespace dapple::face
