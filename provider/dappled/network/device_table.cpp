// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/device_table.hpp"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <initializer_list>

#include "provider/dappled/network/gid_entries.hpp"
#include "provider/network/gid.hpp"

namespace dapple::dappled {
namespace {

bool usable(const Netdev& netdev) {
  return netdev.address_count > 0 || netdev.can_do_without_address();
}

int rank_of(const Netdev& netdev) {
  if (netdev.loopback) return 2;
  return netdev.up && netdev.address_count > 0 ? 0 : 1;
}

const Netdev* find_netdev(const Netdevs& netdevs, uint32_t index) {
  for (uint32_t i = 0; i < netdevs.count; i++) {
    if (netdevs.devices[i].index == index && usable(netdevs.devices[i])) return &netdevs.devices[i];
  }
  return nullptr;
}

bool has_address(const Netdev& netdev, const uint8_t* gid) {
  assert(netdev.address_count <= kMaxAddresses);
  for (uint32_t i = 0; i < netdev.address_count; i++) {
    if (memcmp(netdev.addresses[i], gid, 16) == 0) return true;
  }
  return false;
}

bool is_address(const soft::DeviceInfo& device, const soft::GidEntry& entry) {
  return entry.base_index != soft::kDefaultGid || device.has_default_address != 0;
}

void name_device(soft::DeviceInfo& device) {
  snprintf(device.name, sizeof device.name, "dapple%u", device.index - soft::kFirstDeviceIndex);
}

}  // namespace

const soft::DeviceInfo* DeviceTable::find(uint32_t index) const {
  for (uint32_t i = 0; i < count(); i++) {
    if (devices_[i].index == index) return &devices_[i];
  }
  return nullptr;
}

soft::DeviceInfo* DeviceTable::find(uint32_t netdev_index, uint32_t rail) {
  const auto found = std::find_if(devices_.begin(), devices_.end(), [=](const soft::DeviceInfo& device) {
    return device.netdev_index == netdev_index && device.rail == rail;
  });
  return found != devices_.end() ? &*found : nullptr;
}

bool DeviceTable::is_free(const soft::DeviceInfo& device, uint32_t index) const {
  return device.gids[index].valid == 0 && (users_ == nullptr || !users_->uses_gid(device, index));
}

uint64_t DeviceTable::free_gids(const soft::DeviceInfo& device) const {
  static_assert(soft::kMaxGids <= 64);
  uint64_t free = 0;
  for (uint32_t i = 0; i < soft::kMaxGids; i++) free |= is_free(device, i) ? uint64_t{1} << i : 0;
  return free;
}

// As in the kernel, no address gets the index of the default GID.
void DeviceTable::add_gid(soft::DeviceInfo& device, const uint8_t* gid) const {
  if (has_gid(device, gid)) return;
  uint32_t index = soft::kDefaultGid + 1;
  while (index < soft::kMaxGids && !is_free(device, index)) index++;
  if (index < soft::kMaxGids) set_gid(device, index, gid);
}

void DeviceTable::add_default_gid(soft::DeviceInfo& device, const uint8_t* gid) const {
  if (has_gid(device, gid) || !is_free(device, soft::kDefaultGid)) return;
  set_gid(device, soft::kDefaultGid, gid);
}

void DeviceTable::refresh(soft::DeviceInfo& device, const Netdev& netdev) {
  const soft::DeviceInfo before = device;
  memcpy(device.netdev, netdev.name, sizeof device.netdev);
  memcpy(device.mac, netdev.mac, sizeof device.mac);
  device.netdev_mtu = netdev.mtu;
  device.up = netdev.up;
  device.loopback = netdev.loopback;
  uint8_t own[16];
  soft::default_gid(netdev.loopback || netdev.ethernet ? netdev.mac : nullptr, own);
  static_assert(soft::kMaxRails <= 64);
  own[15] ^= device.rail;
  device.has_default_address = device.rail == 0 && has_address(netdev, own);
  bool removed = false;
  for (soft::GidEntry& entry : device.gids) {
    const bool stays = entry.base_index == soft::kDefaultGid ? memcmp(entry.gid, own, sizeof own) == 0
                                                             : has_address(netdev, entry.gid);
    if (entry.valid == 0 || stays) continue;
    clear_gid(entry);
    removed = true;
  }
  if (removed && users_ != nullptr) users_->gids_removed();
  add_default_gid(device, own);
  for (uint32_t i = 0; i < netdev.address_count; i++) add_gid(device, netdev.addresses[i]);
  // DeviceInfo has no padding that could differ.
  if (memcmp(&before, &device, sizeof device) != 0) {
    device.generation++;
    generation_++;
  }
}

uint64_t DeviceTable::guid_of(const Netdev& netdev, uint32_t rail) const {
  uint64_t value = identity_ + netdev.index * 0x9E3779B97F4A7C15 + rail * 0xD1B54A32D192ED03;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return (value ^ value >> 31) | 1;  // 0 means no GUID
}

void DeviceTable::add(const Netdev& netdev, uint32_t rail, std::span<const uint32_t> freed) {
  uint32_t index = rail == 0 ? soft::kFirstDeviceIndex : soft::kFirstRailIndex;
  while (find(index) != nullptr || std::find(freed.begin(), freed.end(), index) != freed.end()) index++;
  assert(count() < kCapacity && rail < soft::kMaxRails);
  soft::DeviceInfo& device = devices_.emplace_back();
  device.index = index;
  device.netdev_index = netdev.index;
  device.rail = static_cast<uint8_t>(rail);
  device.guid = guid_of(netdev, rail);
  for (uint32_t i = 0; i < soft::kMaxGids; i++) device.gids[i].base_index = static_cast<uint8_t>(i);
  name_device(device);
  refresh(device, netdev);
}

void DeviceTable::sort() {
  std::sort(devices_.begin(), devices_.end(),
            [](const soft::DeviceInfo& a, const soft::DeviceInfo& b) { return a.index < b.index; });
}

void DeviceTable::assert_consistent() const {
  assert(devices_.size() <= kCapacity && division_count_ <= kMaxDivisions);
  for (uint32_t i = 0; i < count(); i++) {
    [[maybe_unused]] const soft::DeviceInfo& device = devices_[i];
    assert(device.index >= soft::kFirstDeviceIndex && device.guid != 0 && device.netdev_index != 0);
    assert(device.rail < soft::kMaxRails && device.rails == 0);
    // Programs know a device by its index.
    assert(i == 0 || devices_[i - 1].index < device.index);
    for (uint32_t k = 0; k < soft::kMaxGids; k++) {
      assert(device.gids[k].base_index == k && device.gids[k].type == soft::GidType::kRoceV2);
      // A GID has one index.
      assert(device.gids[k].valid == 0 || index_of(device.gids, device.gids[k].gid) == k);
    }
  }
}

void DeviceTable::update(const Netdevs& netdevs) {
  // The users of a device notice that it has gone only if no other has its index after the same update.
  uint32_t freed[kCapacity];
  size_t freed_count = 0;
  for (uint32_t i = 0; i < count();) {
    const Netdev* netdev = find_netdev(netdevs, devices_[i].netdev_index);
    if (netdev != nullptr && devices_[i].rail < devices_on(*netdev)) {
      if (devices_[i].rail == 0) refresh(devices_[i], *netdev);
      i++;
    } else {
      freed[freed_count++] = devices_[i].index;
      devices_[i] = devices_.back();
      devices_.pop_back();
      generation_++;
    }
  }
  // Programs take the first device by default, so devices that reach other hosts come first, and loopback comes last.
  for (const int rank : {0, 1, 2}) {
    for (uint32_t i = 0; i < netdevs.count; i++) {
      const Netdev& netdev = netdevs.devices[i];
      if (rank_of(netdev) != rank || !usable(netdev)) continue;
      if (find(netdev.index, 0) == nullptr) add(netdev, 0, {freed, freed_count});
    }
  }
  for (uint32_t i = 0; i < netdevs.count; i++) {
    const Netdev& netdev = netdevs.devices[i];
    if (devices_on(netdev) > 1 && usable(netdev)) add_further(netdev, {freed, freed_count});
  }
  sort();
  assert_consistent();
}

void DeviceTable::restore(const soft::AnnouncedDevice& known) {
  soft::DeviceInfo* device = find(known.netdev_index, known.rail);
  // The kernel reuses the indexes of netdevs.
  if (device == nullptr || known.guid == 0 || strncmp(known.netdev, device->netdev, sizeof known.netdev) != 0) return;
  if (known.index < soft::kFirstDeviceIndex || known.index - soft::kFirstDeviceIndex > 0xFFFF) return;
  if ((known.index < soft::kFirstRailIndex) != (known.rail == 0)) return;
  if (device->index == known.index && device->guid == known.guid) return;
  // If another netdev has got the index meanwhile, the two exchange theirs: the member still knows this device by it.
  for (uint32_t i = 0; i < count(); i++) {
    if (&devices_[i] != device && devices_[i].index == known.index) {
      std::swap(devices_[i].index, device->index);
      name_device(devices_[i]);
      devices_[i].generation++;
    }
  }
  device->index = known.index;
  device->guid = known.guid;
  name_device(*device);
  device->generation++;
  generation_++;
  sort();
  assert_consistent();
}

void DeviceTable::restore_gids(const soft::AnnounceGidsRequest& known) {
  const auto found = std::find_if(devices_.begin(), devices_.end(), [&](const soft::DeviceInfo& device) {
    return device.index == known.index && device.guid == known.guid;
  });
  if (found == devices_.end() || known.generation <= found->restored) return;
  soft::DeviceInfo& device = *found;
  soft::GidEntry before[soft::kMaxGids];
  std::copy_n(device.gids, soft::kMaxGids, before);
  for (soft::GidEntry& entry : device.gids) clear_gid(entry);
  for (const soft::GidEntry& entry : known.gids) {
    // The announcement comes from another process.
    if (entry.valid == 0 || entry.base_index >= soft::kMaxGids || device.gids[entry.base_index].valid != 0) continue;
    const uint32_t now = index_of(before, entry.gid);
    if (now == soft::kMaxGids || has_gid(device, entry.gid)) continue;
    if (entry.base_index == soft::kDefaultGid ? now != soft::kDefaultGid : !is_address(device, before[now])) continue;
    set_gid(device, entry.base_index, entry.gid);
  }
  if (users_ != nullptr) users_->gids_removed();
  // Addresses that have come meanwhile.
  if (before[soft::kDefaultGid].valid != 0) add_default_gid(device, before[soft::kDefaultGid].gid);
  for (const soft::GidEntry& entry : before) {
    if (entry.valid != 0 && is_address(device, entry)) add_gid(device, entry.gid);
  }
  device.restored = known.generation;
  device.generation = std::max(device.generation, known.generation) + 1;
  generation_++;
  assert_consistent();
}

}  // namespace dapple::dappled
