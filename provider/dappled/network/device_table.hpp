// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA devices of a network namespace: one for each netdev that programs may use, with names, indexes and GUIDs
// that last as long as the netdev does.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>

#include "provider/dappled/network/netdevs.hpp"
#include "provider/member/messages.hpp"

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
  // GUIDs derive from this number and the netdev's, so that a program finds the same device through the next dappled.
  // Without `users` no GID is in use.
  explicit DeviceTable(uint64_t identity, GidUsers* users = nullptr) : identity_(identity), users_(users) {}

  // As in the kernel, the default GID is the first one, also if the netdev lacks this address. An address keeps its
  // index among the GIDs while the netdev has it; a new one takes the lowest free index after the default GID's. The
  // index of an address that has gone is not free as long as it has users, even if the address comes again.
  void update(const Netdevs& netdevs);
  // A member knew this device from the last dappled. Ignored if the device no longer exists, or contradicts another
  // one.
  void restore(const soft::AnnouncedDevice& known);
  // The same for the order of a device's GIDs. Ignored if it is not newer than the last one.
  void restore_gids(const soft::AnnounceGidsRequest& known);

  uint32_t generation() const { return generation_; }
  uint32_t count() const { return count_; }
  const soft::DeviceInfo& at(uint32_t index) const {
    assert(index < count_);
    return devices_[index];
  }
  const soft::DeviceInfo* find(uint32_t index) const;
  // A bit for each index of a device's GIDs that the next address may get.
  uint64_t free_gids(const soft::DeviceInfo& device) const;

 private:
  uint64_t guid_of(const Netdev& netdev) const;
  void add(const Netdev& netdev, std::span<const uint32_t> freed);
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
  uint32_t count_ = 0;
  soft::DeviceInfo devices_[soft::kMaxDevices];
};

}  // namespace dapple::dappled
