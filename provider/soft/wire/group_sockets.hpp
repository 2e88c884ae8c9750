// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memberships in multicast groups. The kernel limits those of one socket (net.ipv4.igmp_max_memberships, 20 by
// default; net.core.optmem_max). The receiving socket has the first ones. The others belong to sockets that receive
// nothing; while there are any, the receiving socket takes the packets of all groups that any program of the host has
// joined.
#pragma once

#include <array>
#include <cstdint>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// One thread at a time.
class GroupSockets {
 public:
  // `receiver`: the receiving socket, the same for all calls; `dual_stack`: as that of a Slot.
  // 0; EINVAL: not a group; EAFNOSUPPORT; ENOBUFS: no socket may be in a group, too many sockets are needed, or a
  // further one is needed and the program has changed its network namespace; or an errno. Joining twice counts once.
  int join(int receiver, bool dual_stack, const uint8_t group[16], uint32_t netdev_index);
  // 0, or an errno.
  int leave(int receiver, bool dual_stack, const uint8_t group[16], uint32_t netdev_index);
  // In a child of fork(): the parent's sockets. Nothing else is called afterwards.
  void close_in_child() { others_ = {}; }

 private:
  // With a limit of one group for each socket, the groups of all attachments of a program.
  static constexpr uint32_t kMaxSockets = 255;

  // One of the other sockets joins; a further one if they are full. 0, or an errno.
  int join_another(int receiver, bool dual_stack, const uint8_t group[16], uint32_t netdev_index);

  std::array<OwnedFd, kMaxSockets> others_;  // the first `count_` of them
  uint32_t count_ = 0;
  uint32_t members_ = 0;  // the memberships of these; 0 if there are none
};

}  // namespace dapple::soft
