// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The multicast groups and the queue pairs that are attached to them.
#pragma once

#include <stdint.h>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/objects.hpp"
#include "provider/soft/wire/wire.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMulticastQpn = 0xFFFFFF;
inline constexpr uint32_t kMaxAttachments = 256;

// Internally locked.
class Multicast {
 public:
  explicit Multicast(Wire& wire) : wire_(wire) {}

  // 0; EINVAL: not a group; ENOMEM: too many; or the error of joining. Attaching twice counts once.
  int attach(Qp& qp, const uint8_t group[16], uint32_t netdev_index);
  // EINVAL if it is not attached.
  int detach(Qp& qp, const uint8_t group[16]);
  void detach_from_all(Qp& qp);

  // The numbers of the queue pairs that a packet to the group is for, if it came in by this netdev; at most `room`.
  uint32_t members(const uint8_t group[16], uint32_t netdev_index, uint32_t* qpns, uint32_t room);

 private:
  struct Attachment {
    uint32_t qpn = 0;  // 0: free
    uint32_t netdev_index = 0;
    uint8_t group[16] = {};
  };

  Attachment* find(uint32_t qpn, const uint8_t group[16]);
  void drop(Qp& qp, Attachment& attachment);
  bool joined(const uint8_t group[16], uint32_t netdev_index) const;

  Wire& wire_;
  Mutex mutex_{LockRank::kMulticast};
  Attachment attachments_[kMaxAttachments];
};

}  // namespace dapple::soft
