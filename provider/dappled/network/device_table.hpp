// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA devices of a network namespace: one for each netdev that programs may use, and more for netdevs that
// programs have divided, with names, indexes and GUIDs that last as long as the netdev does.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "provider/dappled/network/netdevs.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/rails.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

// The users of GIDs: queue pairs, address handles, ids of rdma_cm.
class GidUsers {
 public:
  virtual bool uses_gid(const soft::DeviceInfo& device, uint32_t gid_index) const = 0;
  // Addresses have gone from the table. Called before their indexes are given to others.
  virtual void gids_removed() = 0;

 protected:
  ~GidUsers() = default;
};

class DeviceTable {
 public:
  // The most further devices of all divided netdevs.
  static constexpr uint32_t kMaxFurther = 2 * soft::kMaxRails;

  // GUIDs derive from this number and the netdev's, so that a program finds the same device through the next dappled.
  // Without `users` no GID is in use.
  explicit DeviceTable(uint64_t identity, GidUsers* users = nullptr) : identity_(identity), users_(users) {}

  // As in the kernel, the default GID is the first one, also if the netdev lacks this address. An address keeps its
  // index among the GIDs while the netdev has it; a new one takes the lowest free index after the default GID's. The
  // index of an address that has gone is not free as long as it has users, even if the address comes again.
  void update(const Netdevs& netdevs);
  // From now on the netdev has this many devices, if there are to be more than one. A further device of lo has an
  // address of its own: 127.0.0.2 and so on. A further device of another netdev shares one address of each family with
  // the first device, and keeps it as long as the netdev has it. False without room for the devices.
  bool divide(const soft::Rails& rails, const Netdevs& netdevs, soft::Problem& problem);
  // Describes a device to a program with these rails: the first one lacks the addresses of the others.
  void show(const soft::Rails& rails, soft::DeviceInfo& device) const;
  // A member knew this device from the last dappled. Ignored if the device no longer exists, or contradicts another
  // one.
  void restore(const soft::AnnouncedDevice& known);
  // The same for the order of a device's GIDs. Ignored if it is not newer than the last one.
  void restore_gids(const soft::AnnounceGidsRequest& known);

  uint32_t generation() const { return generation_; }
  uint32_t count() const { return static_cast<uint32_t>(devices_.size()); }
  const soft::DeviceInfo& at(uint32_t index) const {
    assert(index < devices_.size());
    return devices_[index];
  }
  const soft::DeviceInfo* find(uint32_t index) const;
  // A bit for each index of a device's GIDs that the next address may get.
  uint64_t free_gids(const soft::DeviceInfo& device) const;

 private:
  struct Division {
    char netdev[16] = {};
    uint32_t count = 0;
  };
  static constexpr uint32_t kMaxDivisions = 32;
  static constexpr uint32_t kCapacity = soft::kMaxDevices + kMaxFurther;

  uint64_t guid_of(const Netdev& netdev, uint32_t rail) const;
  soft::DeviceInfo* find(uint32_t netdev_index, uint32_t rail);
  void add(const Netdev& netdev, uint32_t rail, std::span<const uint32_t> freed);
  // divided_netdevs.cpp
  uint32_t devices_on(const Netdev& netdev) const;  // 1 if it is not divided
  void add_further(const Netdev& netdev, std::span<const uint32_t> freed);
  // Each address' device on the netdev.
  using Shares = uint8_t[kMaxAddresses];
  void share_out(const Netdev& netdev, bool ipv4, Shares& rails);
  void refresh(soft::DeviceInfo& device, const Netdev& netdev);
  // Neither in the table nor in use.
  bool is_free(const soft::DeviceInfo& device, uint32_t gid_index) const;
  void add_gid(soft::DeviceInfo& device, const uint8_t* gid) const;
  void add_default_gid(soft::DeviceInfo& device, const uint8_t* gid) const;
  void sort();
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  uint64_t identity_;
  GidUsers* users_;
  uint32_t generation_ = 0;
  std::vector<soft::DeviceInfo> devices_;
  uint32_t division_count_ = 0;
  Division divisions_[kMaxDivisions];
};

}  // namespace dapple::dappled
