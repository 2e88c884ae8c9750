// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/multicast.hpp"

#include <errno.h>
#include <string.h>

#include <cassert>

#include "provider/network/gid.hpp"

namespace dapple::soft {

Multicast::Attachment* Multicast::find(uint32_t qpn, const uint8_t group[16]) {
  assert_held(mutex_);
  for (Attachment& attachment : attachments_) {
    if (attachment.qpn == qpn && (qpn == 0 || memcmp(attachment.group, group, 16) == 0)) return &attachment;
  }
  return nullptr;
}

bool Multicast::joined(const uint8_t group[16], uint32_t netdev_index) const {
  for (const Attachment& attachment : attachments_) {
    if (attachment.qpn != 0 && attachment.netdev_index == netdev_index && memcmp(attachment.group, group, 16) == 0)
      return true;
  }
  return false;
}

int Multicast::attach(Qp& qp, const uint8_t group[16], uint32_t netdev_index) {
  if (!is_multicast(group)) return EINVAL;
  const std::lock_guard lock(mutex_);
  if (find(qp.qpn, group) != nullptr) return 0;
  Attachment* free = find(0, nullptr);
  if (free == nullptr) return ENOMEM;
  if (!joined(group, netdev_index)) {
    const int error = wire_.join(group, netdev_index);
    if (error != 0) return error;
  }
  assert(qp.qpn != 0 && free->qpn == 0);
  free->qpn = qp.qpn;
  free->netdev_index = netdev_index;
  memcpy(free->group, group, 16);
  qp.multicast_groups.fetch_add(1);
  qp.was_in_group = true;
  return 0;
}

int Multicast::detach(Qp& qp, const uint8_t group[16]) {
  const std::lock_guard lock(mutex_);
  Attachment* attachment = find(qp.qpn, group);
  if (attachment == nullptr) return EINVAL;
  drop(qp, *attachment);
  return 0;
}

void Multicast::detach_from_all(Qp& qp) {
  const std::lock_guard lock(mutex_);
  for (Attachment& attachment : attachments_) {
    if (attachment.qpn == qp.qpn) drop(qp, attachment);
  }
}

void Multicast::drop(Qp& qp, Attachment& attachment) {
  assert_held(mutex_);
  assert(qp.qpn != 0 && attachment.qpn == qp.qpn);
  attachment.qpn = 0;
  [[maybe_unused]] const auto groups = qp.multicast_groups.fetch_sub(1);
  assert(groups > 0);
  // If the wire cannot leave, the netdev is gone, and its memberships with it.
  if (!joined(attachment.group, attachment.netdev_index)) {
    (void)wire_.leave(attachment.group, attachment.netdev_index);
  }
}

uint32_t Multicast::members(const uint8_t group[16], uint32_t netdev_index, uint32_t* qpns, uint32_t room) {
  const std::lock_guard lock(mutex_);
  uint32_t count = 0;
  for (const Attachment& attachment : attachments_) {
    // A queue pair of another device may be attached to the same group.
    if (netdev_index != 0 && attachment.netdev_index != netdev_index) continue;
    if (count < room && attachment.qpn != 0 && memcmp(attachment.group, group, 16) == 0) qpns[count++] = attachment.qpn;
  }
  return count;
}

}  // namespace dapple::soft
