// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Netdevs with several devices.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>

#include "provider/dappled/network/device_table.hpp"
#include "provider/dappled/network/gid_entries.hpp"
#include "provider/network/gid.hpp"

namespace dapple::dappled {
namespace {

const Netdev* find_netdev(const Netdevs& netdevs, const soft::Rails& rails) {
  const Netdev* const end = netdevs.devices + netdevs.count;
  const Netdev* const found = std::find_if(netdevs.devices, end, [&](const Netdev& netdev) {
    return rails.netdev[0] == '\0' ? netdev.loopback : strncmp(netdev.name, rails.netdev, sizeof netdev.name) == 0;
  });
  return found != end ? found : nullptr;
}

// The netdev with this address alone, as lo answers for it.
void use_own_loopback(Netdev& netdev, uint32_t rail) {
  static_assert(soft::kMaxRails < 254);
  const uint8_t address[4] = {127, 0, 0, static_cast<uint8_t>(rail + 1)};
  netdev.address_count = 1;
  soft::ipv4_gid(address, netdev.addresses[0]);
}

}  // namespace

bool DeviceTable::divide(const soft::Rails& rails, const Netdevs& netdevs, soft::Problem& problem) {
  if (rails.count <= 1) return true;
  assert(rails.count <= soft::kMaxRails);
  const Netdev* netdev = find_netdev(netdevs, rails);
  if (netdev == nullptr) {
    problem.set(ENODEV, "there is no network device %.15s", rails.netdev[0] == '\0' ? "lo" : rails.netdev);
    return false;
  }
  if (rails.count == devices_on(*netdev)) return true;
  Division* division = std::find_if(divisions_, divisions_ + division_count_, [&](const Division& known) {
    return strncmp(known.netdev, netdev->name, sizeof known.netdev) == 0;
  });
  uint32_t further = rails.count - 1;
  for (const Division* other = divisions_; other < divisions_ + division_count_; other++)
    further += other != division ? other->count - 1 : 0;
  if (further > kMaxFurther || division == std::end(divisions_)) {
    problem.set(EBUSY,
                "dappled has %u devices on several network devices already, and has no room for %u on %.15s; end "
                "the programs that use dappled and start again",
                count(), rails.count, netdev->name);
    return false;
  }
  if (division == divisions_ + division_count_) division_count_++;
  memcpy(division->netdev, netdev->name, sizeof division->netdev);
  division->count = rails.count;
  update(netdevs);
  return true;
}

uint32_t DeviceTable::devices_on(const Netdev& netdev) const {
  const Division* const end = divisions_ + division_count_;
  const Division* const found = std::find_if(divisions_, end, [&](const Division& division) {
    return strncmp(division.netdev, netdev.name, sizeof division.netdev) == 0;
  });
  return found != end ? found->count : 1;
}

// Of the addresses of a family, a further device keeps those that it has. The lowest one of the others is the first
// device's, and devices that lack one get one each, in ascending order. All that are left are the first device's.
void DeviceTable::share_out(const Netdev& netdev, bool ipv4, Shares& rails) {
  const uint32_t count = devices_on(netdev);
  bool served[soft::kMaxRails] = {};
  bool kept[kMaxAddresses] = {};
  uint32_t sorted[kMaxAddresses];
  uint32_t* end = sorted;
  for (uint32_t i = 0; i < netdev.address_count; i++) {
    const uint8_t* address = netdev.addresses[i];
    if (soft::is_ipv4(address) == ipv4 && !soft::is_link_local(address)) *end++ = i;
  }
  // The kernel lists new addresses of IPv6 before old ones.
  std::sort(sorted, end, [&](uint32_t a, uint32_t b) {
    return memcmp(netdev.addresses[a], netdev.addresses[b], sizeof netdev.addresses[a]) < 0;
  });
  const auto each_address = [&](auto function) { std::for_each(sorted, end, function); };
  for (uint32_t rail = 1; rail < count; rail++) {
    const soft::DeviceInfo* device = find(netdev.index, rail);
    if (device == nullptr) continue;
    each_address([&](uint32_t i) {
      if (!has_gid(*device, netdev.addresses[i])) return;
      rails[i] = static_cast<uint8_t>(rail);
      kept[i] = served[rail] = true;
    });
  }
  uint32_t next = 0;
  each_address([&](uint32_t i) {
    if (kept[i]) return;
    while (next < count && served[next]) next++;
    rails[i] = static_cast<uint8_t>(next < count ? next : 0);
    if (next < count) served[next] = true;
  });
}

void DeviceTable::add_further(const Netdev& netdev, std::span<const uint32_t> freed) {
  Shares rails = {};
  if (!netdev.loopback) {
    share_out(netdev, true, rails);
    share_out(netdev, false, rails);
  }
  for (uint32_t rail = 1; rail < devices_on(netdev); rail++) {
    Netdev share = netdev;
    share.address_count = 0;
    for (uint32_t i = 0; i < netdev.address_count; i++) {
      if (rails[i] == rail) memcpy(share.addresses[share.address_count++], netdev.addresses[i], 16);
    }
    if (netdev.loopback) use_own_loopback(share, rail);
    if (soft::DeviceInfo* device = find(netdev.index, rail)) {
      refresh(*device, share);
    } else {
      add(share, rail, freed);
    }
  }
}

void DeviceTable::show(const soft::Rails& rails, soft::DeviceInfo& device) const {
  assert(rails.has(device) && rails.count <= soft::kMaxRails);
  device.rails = static_cast<uint8_t>(rails.count);
  if (rails.count <= 1 || device.rail != 0) return;
  for (const soft::DeviceInfo& other : devices_) {
    if (other.netdev_index != device.netdev_index || other.rail == 0 || other.rail >= rails.count) continue;
    for (soft::GidEntry& entry : device.gids) {
      if (entry.valid != 0 && has_gid(other, entry.gid)) clear_gid(entry);
    }
  }
}

}  // namespace dapple::dappled
