// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA devices of a network namespace: one for each netdev that programs may use, with names, indexes and GUIDs
// that last as long as the netdev does.
#ifndef DAPPLE_PROVIDER_DAPPLED_DEVICE_TABLE_HPP
#define DAPPLE_PROVIDER_DAPPLED_DEVICE_TABLE_HPP

#include <cstdint>
#include <span>

#include "provider/dappled/netdevs.hpp"
#include "provider/soft/messages.hpp"

namespace dapple::dappled {

class DeviceTable {
 public:
  // GUIDs derive from this number and the netdev's, so that a program finds the same device through the next dappled.
  explicit DeviceTable(uint64_t identity) : identity_(identity) {}

  // An address keeps its place among the GIDs while the netdev has it; a new one takes the lowest free place.
  void update(const Netdevs& netdevs);
  // A member knew this device from the last dappled. Ignored if the device no longer exists, or contradicts another
  // one.
  void restore(const soft::AnnouncedDevice& known);

  uint32_t generation() const { return generation_; }
  uint32_t count() const { return count_; }
  const soft::DeviceInfo& at(uint32_t place) const { return devices_[place]; }
  const soft::DeviceInfo* find(uint32_t index) const;

 private:
  uint64_t guid_of(const Netdev& netdev) const;
  void add(const Netdev& netdev, std::span<const uint32_t> freed);
  void refresh(soft::DeviceInfo& device, const Netdev& netdev);
  void sort();

  uint64_t identity_;
  uint32_t generation_ = 0;
  uint32_t count_ = 0;
  soft::DeviceInfo devices_[soft::kMaxDevices];
};

}  // namespace dapple::dappled

#endif  // DAPPLE_PROVIDER_DAPPLED_DEVICE_TABLE_HPP
