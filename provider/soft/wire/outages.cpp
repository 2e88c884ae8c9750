// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/outages.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>

namespace dapple::soft {
namespace {

bool has_address(const DeviceInfo& device, const uint8_t address[16]) {
  return std::any_of(device.gids, device.gids + kMaxGids, [address](const GidEntry& entry) {
    return entry.valid != 0 && memcmp(entry.gid, address, sizeof entry.gid) == 0;
  });
}

// The other devices of its netdev are up.
bool shares_netdev(const DeviceInfo& device) {
  return device.rails > 1;
}

}  // namespace

template <typename Condition>
bool Outages::any(Condition condition) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(outages_, outages_ + count_, [&](const Outage& outage) { return condition(outage.device); });
}

void Outages::begin(const DeviceInfo& device, roce::Time until) {
  const std::lock_guard lock(mutex_);
  Outage* const end = outages_ + count_;
  Outage* place =
      std::find_if(outages_, end, [&](const Outage& outage) { return outage.device.index == device.index; });
  if (place == end) {
    if (count_ == kMax) return;
    count_++;
  }
  assert(count_ <= kMax && until != roce::kNever);
  place->device = device;
  place->until = until;
}

roce::Time Outages::next_end() const {
  const std::lock_guard lock(mutex_);
  roce::Time earliest = roce::kNever;
  for (uint32_t i = 0; i < count_; i++) earliest = std::min(earliest, outages_[i].until);
  return earliest;
}

bool Outages::end_before(roce::Time now) {
  const std::lock_guard lock(mutex_);
  Outage* const end = outages_ + count_;
  Outage* const left = std::remove_if(outages_, end, [now](const Outage& outage) { return outage.until <= now; });
  count_ = static_cast<uint32_t>(left - outages_);
  return left != end;
}

bool Outages::is_down(uint32_t device_index) const {
  return any([=](const DeviceInfo& device) { return device.index == device_index; });
}

bool Outages::loses(const Path& path) const {
  return any([&](const DeviceInfo& device) {
    return shares_netdev(device) ? has_address(device, path.source) : device.netdev_index == path.netdev_index;
  });
}

// Packets between two addresses of one host come in by lo, whatever their device is.
bool Outages::loses(const Arrival& arrival) const {
  return any([&](const DeviceInfo& device) {
    const bool by_netdev = !shares_netdev(device) && device.netdev_index == arrival.netdev_index;
    return by_netdev || has_address(device, arrival.destination);
  });
}

}  // namespace dapple::soft
