// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// link@N=TIME of DAPPLE_FAULTS: the port of a device is down for a time.
#pragma once

#include "provider/common/mutex.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/soft/wire/wire.hpp"
#include "roce/host/clock.hpp"

namespace dapple::soft {

// The ports of this process that are down by plan. Internally locked; the lock is a leaf.
class Outages {
 public:
  // Begins an outage that ends at this time. A later call for the device replaces an earlier one.
  void begin(const DeviceInfo& device, roce::Time until);
  // kNever if no port is down.
  roce::Time next_end() const;
  // Forgets the outages that are over. True if there were any.
  bool end_before(roce::Time now);

  bool is_down(uint32_t device_index) const;
  // True if a packet is lost: the netdev of its path, or the address at which it has arrived, is down.
  bool loses(const Path& path) const;
  bool loses(const Arrival& arrival) const;

 private:
  // The number of devices that can be down at a time.
  static constexpr uint32_t kMax = 8;
  struct Outage {
    DeviceInfo device;
    roce::Time until = 0;
  };
  template <typename Condition>
  bool any(Condition condition) const;

  mutable Mutex mutex_{LockRank::kOutages};
  Outage outages_[kMax];
  uint32_t count_ = 0;
};

}  // namespace dapple::soft
